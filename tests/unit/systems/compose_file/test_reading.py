"""Compose files: what is honoured, what is told, and that nothing is dropped in silence."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.systems.compose_file.reading import ComposeFile, read_compose_file
from splitbrain.systems.compose_file.service import Bind, Service


def read(folder: Path, text: str, **environment: str) -> ComposeFile:
    path = folder / "compose.yaml"
    path.write_text(text)
    return read_compose_file(path, environment)


def service(folder: Path, *lines: str, top: str = "", **environment: str) -> Service:
    """The one service of a file, whose keys are these lines."""
    body = "".join(f"    {line}\n" for line in ("image: web:1", *lines))
    (found,) = read(folder, f"services:\n  web:\n{body}{top}\n", **environment).services
    return found


def test_a_service_has_what_its_keys_say(tmp_path: Path) -> None:
    (tmp_path / "web.env").write_text("FROM_FILE=1\nBOTH=file\n")
    (tmp_path / "web.conf").write_text("x")
    found = service(
        tmp_path,
        'entrypoint: ["/entry", "-v"]',
        "command: serve --name 'a b'",
        "env_file: web.env",
        "environment: {BOTH: own, NUMBER: 010, TRUTH: yes, PASSED: }",
        "volumes: ['data:/data', '/cache', './web.conf:/etc/web.conf:ro']",
        "hostname: front",
        "container_name: the-web",
        "networks: {default: {aliases: [www]}}",
        "ports: ['8080:80', '127.0.0.1:8443:443/tcp', '53:53/udp', '90-91:90-91', '1234']",
        "expose: [9000]",
        "restart: on-failure:3",
        "working_dir: /srv",
        "user: nobody",
        "deploy: {replicas: 1}",
        top="volumes: {data: }",
        PASSED="on",
    )
    assert found == Service(
        name="web",
        image="web:1",
        entry_point=("/entry", "-v"),
        command=("serve", "--name", "a b"),
        environment={
            "FROM_FILE": "1",
            "BOTH": "own",
            # YAML 1.1 would have made 8 and a truth value of them.
            "NUMBER": "010",
            "TRUTH": "yes",
            "PASSED": "on",
        },
        volumes=("/data", "/cache"),
        volume_names=("data",),
        binds=(Bind(str(tmp_path / "web.conf"), "/etc/web.conf"),),
        hostname="front",
        aliases=("the-web", "front", "www"),
        ports=(80, 443, 1234, 9000),
        restart="on-failure:3",
        working_folder="/srv",
        user="nobody",
    )


def test_the_short_and_the_long_form_are_one(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    short = service(
        tmp_path,
        "environment: ['A=1=2', B]",
        "volumes: ['data:/data', './conf:/conf:ro']",
        "ports: ['8080:80']",
        top="volumes: {data: {}}",
        B="b",
    )
    long = service(
        tmp_path,
        "environment: {A: 1=2, B: }",
        "volumes: [{type: volume, source: data, target: /data},"
        " {type: bind, source: ./conf, target: /conf, read_only: true}]",
        "ports: [{target: 80, published: 8080}]",
        top="volumes: {data: {}}",
        B="b",
    )
    assert short == long


def test_what_is_not_given_is_the_images(tmp_path: Path) -> None:
    for lines in ((), ("command:", "entrypoint: []", "environment:", "volumes:", "ports: []")):
        assert service(tmp_path, *lines) == Service(name="web", image="web:1")


def test_variables_come_from_the_environment_before_the_file_beside(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TAG=2\nBASE=web\n")
    text = "services:\n  web:\n    image: ${BASE}:${TAG:-1}\n    command: echo $$HOME ${NONE}\n"
    assert read(tmp_path, text).services[0].image == "web:2"
    found = read(tmp_path, text, TAG="3")
    assert found.services[0].image == "web:3"
    assert found.services[0].command == ("echo", "$HOME")
    assert "the variable NONE is not set, and stands for nothing" in found.notes


def test_anchors_and_merges_are_resolved(tmp_path: Path) -> None:
    text = (
        "x-web: &web\n  image: web:1\n  environment: &e {A: 1}\n"
        "services:\n  one:\n    <<: *web\n  two:\n    <<: *web\n    environment: {<<: *e, B: 2}\n"
    )
    one, two = read(tmp_path, text).services
    assert one.environment == {"A": "1"}
    assert two.environment == {"A": "1", "B": "2"}


def test_order_of_start_and_harmless_keys_are_told(tmp_path: Path) -> None:
    text = (
        "version: '3'\nname: shop\nnetworks: {a: , b: }\n"
        "services:\n"
        "  web:\n    image: web:1\n    depends_on: {store: {condition: service_healthy}}\n"
        "    labels: {a: b}\n    healthcheck: {test: [CMD, x]}\n    build: .\n"
        "  store: {image: store:1, tty: false, environment: [GONE]}\n"
        "  debug: {image: debug:1, profiles: [debug]}\n"
        "  none: {image: none:1, deploy: {replicas: 0, resources: {}}}\n"
    )
    found = read(tmp_path, text)
    assert [service.name for service in found.services] == ["web", "store"]
    assert found.services[0].depends_on == ("store",)
    assert found.notes == (
        "the service 'web': labels, healthcheck not in force",
        "the service 'web': web:1 is taken as the engine has it, not built",
        "the service 'store': GONE has no value here, and is left out",
        "the service 'debug' has a profile, and is left out",
        "the service 'none' has no replicas, and is left out",
        "all services share one network",
        "all services are started at once, and web again if it ends before the load begins",
    )


def test_a_single_file_that_may_be_written_is_mounted_read_only_and_told(tmp_path: Path) -> None:
    (tmp_path / "web.conf").write_text("x")
    text = "services: {web: {image: web:1, volumes: ['./web.conf:/web.conf']}}"
    found = read(tmp_path, text)
    assert found.services[0].binds == (Bind(str(tmp_path / "web.conf"), "/web.conf"),)
    assert found.notes == ("the service 'web': ./web.conf is mounted read-only",)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ("build: .", "is built by the file"),
        ("command: x", "has no image"),
        ("{image: x, network_mode: host}", "network of its own"),
        ("{image: x, privileged: true}", "could undo the faults"),
        ("{image: x, cap_add: [ALL]}", "has 'cap_add': nothing of a run would be"),
        ("{image: x, tmpfs: /tmp}", "has 'tmpfs'"),
        ("{image: x, secrets: [a]}", "has 'secrets'"),
        ("{image: x, imagee: y}", "has 'imagee'"),
        ("{image: [x]}", "image that is no text"),
        ('{image: x, command: "a \'b"}', "open quote"),
        ("{image: x, command: {a: b}}", "has command that are no list"),
        ("{image: x, environment: ['=1']}", "without a name"),
        ("{image: x, env_file: none.env}", "none.env, which cannot be read"),
        ("{image: x, volumes: ['./none:/x:ro']}", "is no file and no folder"),
        ("{image: x, volumes: ['.:/x']}", "may write to"),
        ("{image: x, volumes: ['data:x']}", "without a place"),
        ("{image: x, volumes: ['data:/x']}", "'data' that is not declared"),
        ("{image: x, volumes: ['v:/x:ro']}", "only reads the volume 'v'"),
        ("{image: x, volumes: [{type: tmpfs, target: /x}]}", "type tmpfs"),
        ("{image: x, volumes: ['v:/x'], scale: 2}", "shared by 'web' and its 2 copies"),
        ("{image: x, depends_on: [gone]}", "depends on 'gone'"),
        ("{image: x, depends_on: {web: {condition: service_completed_successfully}}}", "to end"),
        ("{image: x, networks: {a: {ipv4_address: 10.0.0.1}}}", "wants ipv4_address"),
        ("{image: x, networks: {a: b}}", "network 'a' that is no mapping"),
        ("{image: x, networks: b}", "networks that is no mapping"),
        ("{image: x, networks: [{a: b}]}", "networks that are no list of texts"),
        ("{image: x, environment: [A: 1]}", "environment that are no list of texts"),
        ("{image: x, command: [[a]]}", "command that are no list of texts"),
        ("{image: x, depends_on: [{a: b}]}", "depends_on that are no list of texts"),
        ("{image: x, restart: sometimes}", "cannot have restart: sometimes"),
        ("{image: x, deploy: {replicas: many}}", "cannot have many copies"),
        ("{image: x, deploy: 3}", "deploy that is no mapping"),
        ("{image: '$'}", "where a $ stands before no name"),
        ("word", "is no mapping of keys"),
    ],
)
def test_what_would_change_the_meaning_is_refused(tmp_path: Path, keys: str, says: str) -> None:
    text = f"services:\n  web:\n    {keys}\nvolumes: {{v: }}\n"
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "has no services"),
        ("- a", "has no services"),
        ("services: {}", "no service that is started"),
        ("services: {a: {image: x, profiles: [p]}}", "no service that is started"),
        ("services: [a]", "has no services"),
        ("include: [b.yaml]\nservices: {a: {image: x}}", "'include', which is not honoured"),
        ("volumes: [v]\nservices: {a: {image: x}}", "volumes that are no mapping"),
        ("services: {a: {image: x}, a: {image: y}}", "'a' stands twice (line 1)"),
        ("services: {a: {image: x", "is no YAML"),
        ("services: {a: !!python/object:os.system {}}", "is no YAML"),
        ("\x00", "is no YAML"),
        (
            "volumes: {v: }\nservices: {a: &a {image: x, volumes: ['v:/x']}, b: *a}",
            "'v' is shared by 'b' and 'a'",
        ),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        read(tmp_path, text)
    assert says in str(refused.value)


def test_the_digest_changes_with_variables_and_mounted_files(tmp_path: Path) -> None:
    (tmp_path / "web.conf").write_text("a")
    text = "services: {web: {image: 'web:${TAG:-1}', volumes: ['./web.conf:/web.conf:ro']}}"
    digests = [read(tmp_path, text).digest(), read(tmp_path, f"{text}\n# same").digest()]
    assert digests[0] == digests[1]
    digests.append(read(tmp_path, text, TAG="2").digest())
    (tmp_path / "web.conf").write_text("b")
    digests.append(read(tmp_path, text).digest())
    assert len(set(digests)) == 3
