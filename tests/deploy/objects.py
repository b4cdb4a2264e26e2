"""Reads manifests strictly, judges them by Kubernetes' schemas, and knocks as a kubelet does.

A request is a line of JSON, and so is its answer; both are described in support.rs.
"""

import base64
import functools
import json
import pathlib
import ssl
import sys
import urllib.error
import urllib.request

import jsonschema
import yaml
from kubernetes_validate import utils

# The definitions of one version of Kubernetes are megabytes, and are read for each object.
utils.schema_contents = functools.cache(utils.schema_contents)

OWN = pathlib.Path(__file__).parent / "schemas"


class Strict(yaml.CSafeLoader):
    """A key that is given twice is an error, as it is to the API server."""

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key.value!r} is given twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


@functools.cache
def own_schema(kind):
    path = OWN / f"{kind.lower()}.json"
    if not path.exists():
        return None
    schema = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def judge(document, versions):
    """What is wrong with an object."""
    kind = document.get("kind", "")
    name = f"{kind} {document.get('metadata', {}).get('name')}"
    own = own_schema(kind)
    if own is not None:
        return [f"{name}: {error.json_path}: {error.message}" for error in own.iter_errors(document)]
    problems = []
    for version in versions:
        try:
            utils.validate(document, version, strict=True)
        except utils.ValidationError as error:
            path = ".".join(str(part) for part in error.path)
            problems.append(f"{name}: Kubernetes {version}: {path}: {error.message}")
        except utils.SchemaNotFoundError as error:
            problems.append(f"{name}: {error.message}, nor is there one in tests/deploy/schemas")
    return problems


def objects(request):
    try:
        documents = [one for one in yaml.load_all(request["text"], Loader=Strict) if one]
    except yaml.YAMLError as error:
        return {"documents": [], "problems": [str(error)]}
    versions = request["versions"]
    problems = [problem for one in documents for problem in judge(one, versions)]
    return {"documents": documents, "problems": problems}


def knock(request):
    """The status of a GET, with whatever certificate: so does a kubelet."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    ask = urllib.request.Request(request["url"])
    if request.get("user"):
        token = base64.b64encode(request["user"].encode()).decode()
        ask.add_header("Authorization", f"Basic {token}")
    try:
        with urllib.request.urlopen(ask, context=context, timeout=30) as answer:
            return {"status": answer.status}
    except urllib.error.HTTPError as error:
        return {"status": error.code}
    except OSError as error:
        return {"status": 0, "problem": str(error)}


for line in sys.stdin:
    request = json.loads(line)
    answer = knock(request) if "url" in request else objects(request)
    print(json.dumps(answer), flush=True)
