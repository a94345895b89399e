"""Compose files and choices that `splitbrain try` refuses."""

from tests.bad_input.cause import Chapter, causes, file

_SHOP = """
services:
  web: {image: "web:1", scale: 2}
  store: {image: "store:1"}
"""
_TRY = "try compose.yaml --port web:80 --driver http"
_SHARED = "services: {a: &a {image: x, volumes: ['v:/v']}, b: *a}\nvolumes: {v: }\n"

COMPOSE_FILES = Chapter(
    "Compose files",
    causes(
        f"""
compose-not-named | no compose file | try
  missing argument FILE. `splitbrain try --help` shows what there is
compose-absent | a compose file that is not there | {_TRY} | process
  the compose file {{folder}}/compose.yaml cannot be read: No such file or directory. Name a file
  that exists
compose-no-yaml | a compose file that is no YAML | {_TRY}
  {{folder}}/compose.yaml is no YAML: expected ',' or '}}', but got '<stream end>' (line 1). Repair
  the file
compose-twice | a service that stands twice | {_TRY}
  {{folder}}/compose.yaml is no YAML: the key 'web' stands twice (line 3). Repair the file
compose-no-services | a YAML file without services | {_TRY}
  {{folder}}/compose.yaml has no services. Name a compose file
compose-build | a service without an image | {_TRY}
  the service 'web' is built by the file, and nothing is built here. Build it, and give the service
  the image's name: image: NAME
compose-privileged | a privileged service | {_TRY}
  the service 'web' has 'privileged': a privileged container could undo the faults, on this machine
  too. Take it out, or write an adapter (`splitbrain docs your-system`)
compose-host-network | a service in the machine's own network | {_TRY}
  the service 'web' has 'network_mode': every service has a network of its own, so that it can be
  cut off. Take it out, or write an adapter (`splitbrain docs your-system`)
compose-unknown-key | a key that is not honoured | {_TRY}
  the service 'web' has 'secrets': nothing of a run would be as it says. Take it out, or write an
  adapter (`splitbrain docs your-system`)
compose-folder | a folder of the machine that may be written to | {_TRY}
  the service 'web' may write to {{folder}}, and a run would harm it. Make it a volume, as in
  data:/data, or read-only, .:/data:ro
compose-shared | a volume that services share | {_TRY}
  the volume 'v' is shared by 'b' and 'a', and each node's data lie on a disk of its own. Give each
  a volume of its own, copies as services of their own
compose-variable | a variable that must be set | {_TRY}
  the service 'web'.image needs the variable TAG: say which. Set it in the environment or in .env
  beside the compose file
compose-dollar | a dollar that names nothing | {_TRY}
  the service 'web'.command is 'echo $', where a $ stands before no name. Write ${{NAME}},
  ${{NAME:-default}}, or $$ for a $
try-no-port | nobody named that clients ask | try compose.yaml --driver http
  no service is named that clients are to ask. Give --port SERVICE:PORT; the services are: web,
  store
try-port-without-number | a port without a number | try compose.yaml --port web --driver http
  --port cannot be 'web'. Write SERVICE:PORT, with the port inside of the container, as in
  store:6379
try-unknown-service | a port of an unknown service | try compose.yaml --port wep:80 --driver http
  --port names 'wep', and {{folder}}/compose.yaml starts no such service. Did you mean 'web'?
try-spare-unknown | an unknown service that is spared | {_TRY} --spare stor
  --spare names 'stor', and {{folder}}/compose.yaml starts no such service. Did you mean 'store'?
try-spare-all | every service spared | {_TRY} --spare web --spare store
  every service is spared. Leave one for the faults, or --nemesis none
try-no-driver | no driver | try compose.yaml --port web:80
  no driver is named. There are etcd, http, kafka, postgres, redis, and your own: file.py
try-unknown-driver | an unknown driver | try compose.yaml --port web:80 --driver mongo
  there is no driver 'mongo'. There are etcd, http, kafka, postgres, redis, and your own: file.py
try-no-driver-file | a driver's file that is not there
  $ try compose.yaml --port web:80 --driver own.py
  there is no file {{folder}}/own.py. Name a Python file that holds a driver
try-driver-without-ask | a driver's file without a function
  $ try compose.yaml --port web:80 --driver own.py
  {{folder}}/own.py holds no ask. It holds no driver at all; `splitbrain docs try` shows
  a driver of one's own
try-setting | a setting that the driver has not | {_TRY} --setting user=me
  the driver http has no setting 'user'. The settings are: digest, driver, file,
  notices, path, port, spare
try-kafka-acks | acknowledgements that nobody gives
  $ try compose.yaml --port web:80 --driver kafka --setting acks=0
  --setting acks cannot be '0'. Choose all or 1
try-kafka-partitions | a topic without partitions
  $ try compose.yaml --port web:80 --driver kafka --setting partitions=0
  --setting partitions cannot be '0'. Give a whole number from 1 to 1000
try-several | a fault at a service of several copies | {_TRY} --nemesis kill:web
  'kill:web' names a service of 2 copies. Name one of them: web-1, web-2
try-unknown-target | a fault at nobody | {_TRY} --nemesis kill:nobody
  there is no target 'nobody' in a cluster of n1, n2, n3. Use leader, follower, last-leader,
  controller, laggard, random:K, halves, all or a node's name
try-workload | a workload that the driver has not | {_TRY} --workload set
  the system 'compose' does not serve the workload 'set'. It serves: register
compose-without-try | the system without its file | test --system compose
  no compose file is named. Use `splitbrain try FILE --port SERVICE:PORT --driver DRIVER`
""",
        {
            "compose-no-yaml": file("compose.yaml", "services: {web: {image: x"),
            "compose-twice": file(
                "compose.yaml", "services:\n  web: {image: x}\n  web: {image: y}"
            ),
            "compose-no-services": file("compose.yaml", "a: b"),
            "compose-build": file("compose.yaml", "services: {web: {build: .}}"),
            "compose-privileged": file("compose.yaml", "services: {web: {privileged: true}}"),
            "compose-host-network": file("compose.yaml", "services: {web: {network_mode: host}}"),
            "compose-unknown-key": file("compose.yaml", "services: {web: {secrets: [a]}}"),
            "compose-folder": file("compose.yaml", "services: {web: {volumes: ['.:/data']}}"),
            "compose-shared": file("compose.yaml", _SHARED),
            "compose-variable": file(
                "compose.yaml", "services: {web: {image: '${TAG:?say which}'}}"
            ),
            "compose-dollar": file("compose.yaml", "services: {web: {command: 'echo $'}}"),
            "try-driver-without-ask": lambda scene: (
                scene.write("compose.yaml", _SHOP),
                scene.write("own.py", ""),
            ),
            **dict.fromkeys(
                (
                    "try-no-port",
                    "try-port-without-number",
                    "try-unknown-service",
                    "try-spare-unknown",
                    "try-spare-all",
                    "try-no-driver",
                    "try-unknown-driver",
                    "try-no-driver-file",
                    "try-setting",
                    "try-kafka-acks",
                    "try-kafka-partitions",
                    "try-several",
                    "try-unknown-target",
                    "try-workload",
                ),
                file("compose.yaml", _SHOP),
            ),
        },
    ),
)
