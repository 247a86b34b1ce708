package config

import _ "embed" // for the schema

// Schema is the JSON Schema of the configuration, for editors. A test makes it of the types
// of this package and of config.example.yaml.
//
//go:embed schema.json
var Schema []byte
