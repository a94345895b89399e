// Marks the module's folder and is not read: VERSION.mod takes its place (go build -modfile).
module splitbrain.example/nats
