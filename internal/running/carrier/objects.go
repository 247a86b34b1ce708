package carrier

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go/jetstream"

	"mailboxd/internal/decisions/fleet"
)

// ErrMissing says that the hub doesn't have an object, such as one that lost its disk.
var ErrMissing = errors.New("the hub does not have the object")

// ErrObject says that the bytes of an object aren't those that the message describes.
var ErrObject = errors.New("object differs from its description")

// Put sends the bytes of a reader to the owner, under a key that no other bytes have. What the hub has already isn't
// sent again.
func (r *Runner) Put(ctx context.Context, kind fleet.ObjectKind, key, name string, from io.ReadSeeker) (fleet.Object, error) {
	ctx, stop := r.conn.within(ctx)
	defer stop()
	o := fleet.Object{Kind: kind, Key: key, Name: name}
	known, err := find(ctx, r.js, outBucket(r.name), o, from)
	if err != nil || known.SHA256 != "" {
		return known, err
	}
	return put(ctx, r.js, outBucket(r.name), o, from)
}

// Get writes the bytes of an object of the owner, and checks size and digest. After an error, what was
// written must not be used.
func (r *Runner) Get(ctx context.Context, o fleet.Object, to io.Writer) error {
	ctx, stop := r.conn.within(ctx)
	defer stop()
	return get(ctx, r.js, inBucket(r.name), o, to)
}

// Put sends the bytes of a reader to a runner.
func (o *Owner) Put(ctx context.Context, runner string, kind fleet.ObjectKind, key, name string, from io.Reader) (fleet.Object, error) {
	ctx, stop := o.conn.within(ctx)
	defer stop()
	return put(ctx, o.js, inBucket(runner), fleet.Object{Kind: kind, Key: key, Name: name}, from)
}

// Get writes the bytes of an object of a runner, and checks size and digest. After an error, what was
// written must not be used.
func (o *Owner) Get(ctx context.Context, runner string, object fleet.Object, to io.Writer) error {
	ctx, stop := o.conn.within(ctx)
	defer stop()
	return get(ctx, o.js, outBucket(runner), object, to)
}

// Forget removes the objects with some keys of both buckets of a runner. Missing ones are no error.
func (o *Owner) Forget(ctx context.Context, runner string, keys ...string) error {
	var all error
	for _, bucket := range []string{inBucket(runner), outBucket(runner)} {
		stream, err := o.js.Stream(ctx, "OBJ_"+bucket)
		if err != nil {
			return fmt.Errorf("open bucket %s: %w", bucket, err)
		}
		for _, key := range keys {
			if err := remove(ctx, stream, bucket, key); err != nil {
				all = errors.Join(all, fmt.Errorf("remove object %s of %s: %w", key, bucket, err))
			}
		}
	}
	return all
}

// remove removes an object of a bucket. The client would write to the bucket that the description of the object names,
// which may be the one of another runner.
func remove(ctx context.Context, stream jetstream.Stream, bucket, key string) error {
	description := "$O." + bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(key))
	m, err := stream.GetLastMsgForSubject(ctx, description)
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	var chunks struct {
		ID string `json:"nuid"`
	}
	if err = json.Unmarshal(m.Data, &chunks); err == nil {
		err = stream.Purge(ctx, jetstream.WithPurgeSubject("$O."+bucket+".C."+chunks.ID))
	}
	return errors.Join(err, stream.Purge(ctx, jetstream.WithPurgeSubject(description)))
}

// How long getting an object may take at most. Without a deadline, the client gives up after 5 seconds.
const (
	answerTime = 10 * time.Second
	slowest    = 64 << 10 // bytes in a second
)

// find returns an object with size and digest if a bucket has it with the bytes of a reader.
func find(ctx context.Context, js jetstream.JetStream, bucket string, o fleet.Object, from io.ReadSeeker) (fleet.Object, error) {
	store, err := js.ObjectStore(ctx, bucket)
	if err != nil {
		return o, fmt.Errorf("open bucket %s: %w", bucket, err)
	}
	info, err := store.GetInfo(ctx, o.Key)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return o, nil
	}
	if err != nil {
		return o, fmt.Errorf("look for object %s in %s: %w", o.Key, bucket, err)
	}
	sum := sha256.New()
	n, err := io.Copy(sum, from)
	if err == nil {
		_, err = from.Seek(0, io.SeekStart)
	}
	if err != nil {
		return o, fmt.Errorf("read object %s: %w", o.Key, err)
	}
	if info.Size == uint64(n) && info.Digest == jetstream.GetObjectDigestValue(sum) {
		o.Size, o.SHA256 = n, hex.EncodeToString(sum.Sum(nil))
	}
	return o, nil
}

func put(ctx context.Context, js jetstream.JetStream, bucket string, o fleet.Object, from io.Reader) (fleet.Object, error) {
	if err := fleet.Key(o.Key); err != nil {
		return o, err
	}
	store, err := js.ObjectStore(ctx, bucket)
	if err != nil {
		return o, fmt.Errorf("open bucket %s: %w", bucket, err)
	}
	sum := sha256.New()
	longer, stop := outliving(ctx, answerTime)
	defer stop()
	info, err := store.Put(longer, jetstream.ObjectMeta{Name: o.Key}, io.TeeReader(until{ctx, from}, sum))
	if err != nil {
		return o, fmt.Errorf("put object %s to %s: %w", o.Key, bucket, err)
	}
	o.Size, o.SHA256 = int64(info.Size), hex.EncodeToString(sum.Sum(nil))
	return o, nil
}

// An until reads until its context ends.
type until struct {
	ctx  context.Context
	from io.Reader
}

func (u until) Read(text []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.from.Read(text)
}

// outliving returns a context that ends some time after another one: the client removes what it has sent of an object that
// it can't read to its end, but not once its context has ended.
func outliving(ctx context.Context, after time.Duration) (longer context.Context, stop func()) {
	longer, end := context.WithCancel(context.WithoutCancel(ctx))
	undo := context.AfterFunc(ctx, func() { time.AfterFunc(after, end) })
	return longer, func() { undo(); end() }
}

func get(ctx context.Context, js jetstream.JetStream, bucket string, o fleet.Object, to io.Writer) error {
	if err := o.Check(); err != nil {
		return err
	}
	store, err := js.ObjectStore(ctx, bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		return fmt.Errorf("open bucket %s: %w", bucket, ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", bucket, err)
	}
	ctx, stop := context.WithTimeout(ctx, answerTime+time.Duration(o.Size/slowest)*time.Second)
	defer stop()
	from, err := open(ctx, stop, store, o.Key)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("get object %s of %s: %w", o.Key, bucket, ErrMissing)
	}
	if err != nil {
		return fmt.Errorf("get object %s of %s: %w", o.Key, bucket, err)
	}
	defer func() { _ = from.Close() }()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, sum), io.LimitReader(from, o.Size+1))
	switch {
	case n > o.Size || err == nil && n != o.Size:
		return fmt.Errorf("get object %s of %s: %w: want %d bytes", o.Key, bucket, ErrObject, o.Size)
	case err != nil:
		return fmt.Errorf("get object %s of %s: %w", o.Key, bucket, err)
	case hex.EncodeToString(sum.Sum(nil)) != o.SHA256:
		return fmt.Errorf("get object %s of %s: %w: its SHA-256 is another one", o.Key, bucket, ErrObject)
	}
	return nil
}

// open begins to read an object. The client would follow a link to other buckets, and a link to itself until the context
// ends, so links are refused; one that takes the place of the object meanwhile has answerTime.
func open(ctx context.Context, stop func(), store jetstream.ObjectStore, key string) (jetstream.ObjectResult, error) {
	defer time.AfterFunc(answerTime, stop).Stop()
	info, err := store.GetInfo(ctx, key)
	if err != nil {
		return nil, err
	}
	if info.Opts != nil && info.Opts.Link != nil {
		return nil, fmt.Errorf("%w: it is a link", ErrObject)
	}
	return store.Get(ctx, key)
}
