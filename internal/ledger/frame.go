package ledger

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// A frame is what one group has changed, as the redo log has it: how long it is,
// a sum over the rest, its number, and the rows.
const (
	frameHead = 16 // 4 bytes length of the rows, 4 sum, 8 number
	maxFrame  = 1 << 30
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendFrame adds the frame of a layer to b, whose rows are made in the room of v.
func appendFrame(b []byte, number uint64, c *memtable, v []value) []byte {
	start := len(b)
	b = append(b, make([]byte, frameHead)...)
	_ = c.each(v, func(r change) error { // nothing fails in it
		b = append(b, byte(r.of), byte(len(r.values)))
		for _, v := range r.values {
			b = appendValue(b, v)
		}
		return nil
	})
	frame := b[start:]
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-frameHead))
	binary.LittleEndian.PutUint64(frame[8:], number)
	binary.LittleEndian.PutUint32(frame[4:], crc32.Checksum(frame[8:], castagnoli))
	return b
}

// cutFrame returns the first frame of b, and what follows it. One that is not
// whole, as after a power cut, is none.
func cutFrame(b []byte) (number uint64, rows, rest []byte, ok bool) {
	if len(b) < frameHead {
		return 0, nil, nil, false
	}
	length := binary.LittleEndian.Uint32(b)
	if length > maxFrame || int64(len(b)) < frameHead+int64(length) {
		return 0, nil, nil, false
	}
	frame, rest := b[:frameHead+length], b[frameHead+length:]
	if crc32.Checksum(frame[8:], castagnoli) != binary.LittleEndian.Uint32(frame[4:]) {
		return 0, nil, nil, false
	}
	return binary.LittleEndian.Uint64(frame[8:]), frame[frameHead:], rest, true
}

func appendValue(b []byte, v value) []byte {
	b = append(b, v.kind)
	switch v.kind {
	case intValue:
		return binary.AppendVarint(b, v.number)
	case textValue, blobValue: // one of the two is empty
		b = binary.AppendUvarint(b, uint64(len(v.text)+len(v.bytes)))
		return append(append(b, v.text...), v.bytes...)
	}
	return b
}

// errFrame says that a frame is whole and makes no sense.
var errFrame = fmt.Errorf("%w: a frame of its redo log is none of this version's", errUnreadable)

// eachRow yields the rows of a frame.
func eachRow(b []byte, yield func(change) error) error {
	values := make([]value, 0, mostValues)
	for len(b) > 0 {
		if len(b) < 2 || table(b[0]) >= tableCount || int(b[1]) != widths[b[0]] {
			return errFrame
		}
		r := change{table(b[0]), values}
		b = b[2:]
		for range widths[r.of] {
			v, rest, err := cutValue(b)
			if err != nil {
				return err
			}
			r.values, b = append(r.values, v), rest
		}
		if err := yield(r); err != nil {
			return err
		}
	}
	return nil
}

func cutValue(b []byte) (v value, rest []byte, err error) {
	if len(b) == 0 {
		return value{}, nil, errFrame
	}
	v, b = value{kind: b[0]}, b[1:]
	switch v.kind {
	case nullValue:
		return v, b, nil
	case intValue:
		n, size := binary.Varint(b)
		if size <= 0 {
			return value{}, nil, errFrame
		}
		v.number = n
		return v, b[size:], nil
	case textValue, blobValue:
		n, size := binary.Uvarint(b)
		if size <= 0 || n > uint64(len(b)-size) {
			return value{}, nil, errFrame
		}
		v.bytes = b[size:][:n]
		return v, b[size:][n:], nil
	}
	return value{}, nil, errFrame
}
