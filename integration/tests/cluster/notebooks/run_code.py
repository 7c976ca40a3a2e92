"""Starts a kernel of the Jupyter server at an address, as a browser would, and prints what some code prints there."""

import asyncio
import json
import sys
import uuid
from urllib.parse import parse_qs, urlsplit

from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.websocket import websocket_connect


async def main(url: str, code: str) -> None:
    parts = urlsplit(url)
    token = parse_qs(parts.query)["token"][0]
    headers = {"Authorization": f"token {token}"}
    base = f"{parts.scheme}://{parts.netloc}{parts.path}"
    client = AsyncHTTPClient()
    page = await client.fetch(url, request_timeout=60)
    assert b"jupyter" in page.body.lower(), page.body[:200]
    started = await client.fetch(
        f"{base}api/kernels", method="POST", headers=headers, body="{}", request_timeout=60
    )
    kernel = json.loads(started.body)["id"]
    channels = f"{base}api/kernels/{kernel}/channels".replace("http", "ws", 1)
    socket = await websocket_connect(HTTPRequest(channels, headers=headers))
    header = {"msg_id": uuid.uuid4().hex, "session": uuid.uuid4().hex, "username": "", "version": "5.3"}
    header["msg_type"] = "execute_request"
    content = {"code": code, "silent": False}
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    await socket.write_message(json.dumps(message))
    while True:
        answer = json.loads(await socket.read_message())
        if answer["parent_header"].get("msg_id") != header["msg_id"]:
            continue
        if answer["msg_type"] == "stream":
            sys.stdout.write(answer["content"]["text"])
        # The reply comes through another channel than the output, and may overtake it.
        if answer["msg_type"] == "status" and answer["content"]["execution_state"] == "idle":
            break
    socket.close()


asyncio.run(main(sys.argv[1], sys.argv[2]))
