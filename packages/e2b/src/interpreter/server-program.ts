/**
 * Runs inside a sandbox, with what every Python has. It keeps a kernel, a process of its own, for each context, and answers
 * HTTP: what a kernel prints, shows and raises goes out line by line as it comes.
 */
export const interpreterServer = String.raw`
import codecs, json, os, queue, signal, subprocess, sys, threading, uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HERE = os.path.dirname(os.path.abspath(__file__))
MARK = b"\0warren-end\0"
CONTEXTS_MAX = 64
BODY_MAX = 16 * 1024 * 1024
COMMANDS = {
    "python": ["python3", os.path.join(HERE, "kernel.py")],
    "javascript": ["node", os.path.join(HERE, "kernel.cjs")],
}
NAMES = {"python": "python", "py": "python", "python3": "python", "javascript": "javascript", "js": "javascript"}


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class Kernel:
    """One process that keeps what was defined in it."""

    def __init__(self, language, cwd):
        self.id = str(uuid.uuid4())
        self.language = language
        self.cwd = cwd
        self.turn = threading.Lock()
        self.count = 0
        self.process = None

    def start(self):
        ask_out, ask_in = os.pipe()
        say_out, say_in = os.pipe()
        env = dict(os.environ, MPLBACKEND="agg", WARREN_ASK=str(ask_out), WARREN_SAY=str(say_in))
        try:
            self.process = subprocess.Popen(
                COMMANDS[self.language], cwd=self.cwd, env=env, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=(ask_out, say_in), start_new_session=True)
        except OSError as failure:
            os.close(ask_in)
            os.close(say_out)
            raise Refused(400, "%s cannot be run here: %s" % (self.language, failure))
        finally:
            os.close(ask_out)
            os.close(say_in)
        self.asks = os.fdopen(ask_in, "w", encoding="ascii")
        self.events = queue.Queue()
        self.count = 0
        for name, target, stream in (
            ("say", self.listen, os.fdopen(say_out, "r", encoding="ascii")),
            ("stdout", self.pour, self.process.stdout),
            ("stderr", self.pour, self.process.stderr),
        ):
            threading.Thread(target=target, args=(name, stream, self.events), daemon=True).start()

    def listen(self, name, stream, events):
        for line in stream:
            events.put((name, json.loads(line)))
        events.put(("dead", None))

    def pour(self, name, stream, events):
        held, decoder = b"", codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            piece = os.read(stream.fileno(), 65536)
            if not piece:
                events.put((name, None))
                return
            held += piece
            while MARK in held:
                before, held = held.split(MARK, 1)
                self.tell(name, decoder.decode(before), events)
                events.put((name, None))
            # A mark may have come in part.
            keep = next((n for n in range(min(len(MARK) - 1, len(held)), 0, -1) if held.endswith(MARK[:n])), 0)
            self.tell(name, decoder.decode(held[: len(held) - keep]), events)
            held = held[len(held) - keep :]

    def tell(self, name, text, events):
        if text:
            events.put((name, text))

    def stop(self):
        if self.process is None:
            return
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.process = None

    def execute(self, code, env):
        """What happens, message by message."""
        if self.process is None or self.process.poll() is not None:
            self.stop()
            self.start()
        self.count += 1
        yield {"type": "number_of_executions", "execution_count": self.count}
        self.asks.write(json.dumps({"code": code, "env": env}) + "\n")
        self.asks.flush()
        waited = {"say", "stdout", "stderr"}
        while waited:
            name, what = self.events.get()
            if name == "dead":
                if "say" in waited:
                    self.stop()
                    yield {"type": "error", "name": "KernelDied", "value": "the kernel has ended", "traceback": "the kernel has ended"}
                return
            if what is None:
                waited.discard(name)
            elif name == "say":
                if what["type"] == "end":
                    waited.discard("say")
                else:
                    yield what
            else:
                yield {"type": name, "text": what}

    def interrupt(self):
        if self.process is not None and self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGINT)


class Contexts:
    def __init__(self):
        self.lock = threading.Lock()
        self.all = {}
        self.usual = {}

    def create(self, language, cwd):
        name = NAMES.get((language or "python").lower())
        if name is None:
            raise Refused(400, "there is no kernel for %s" % language)
        if not os.path.isdir(cwd):
            raise Refused(400, "there is no folder %s" % cwd)
        with self.lock:
            if len(self.all) >= CONTEXTS_MAX:
                raise Refused(429, "there are too many contexts")
            kernel = Kernel(name, cwd)
            self.all[kernel.id] = kernel
            return kernel

    def get(self, id):
        with self.lock:
            if id not in self.all:
                raise Refused(404, "Context %s not found" % id)
            return self.all[id]

    def of_language(self, language):
        name = NAMES.get((language or "python").lower())
        with self.lock:
            known = self.all.get(self.usual.get(name))
        if known is None:
            known = self.create(language, os.getcwd())
            self.usual[name] = known.id
        return known

    def remove(self, id):
        kernel = self.get(id)
        with self.lock:
            self.all.pop(id, None)
        kernel.stop()

    def restart(self, id):
        kernel = self.get(id)
        kernel.stop()
        with kernel.turn:
            kernel.start()


contexts = Contexts()


def shown(kernel):
    return {"id": kernel.id, "language": kernel.language, "cwd": kernel.cwd}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def body(self):
        length = int(self.headers.get("content-length") or 0)
        if length > BODY_MAX:
            raise Refused(413, "the request is too large")
        data = self.rfile.read(length) if length else self.chunks()
        return json.loads(data or b"{}")

    def chunks(self):
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return b""
        data = b""
        while True:
            size = int(self.rfile.readline().split(b";")[0], 16)
            piece = self.rfile.read(size)
            self.rfile.readline()
            if not size:
                return data
            data += piece
            if len(data) > BODY_MAX:
                raise Refused(413, "the request is too large")

    def answer(self, status, value):
        data = json.dumps(value).encode() if value is not None else b""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def handle_one(self, work):
        try:
            work()
        except Refused as refused:
            self.answer(refused.status, {"message": str(refused)})
        except (ValueError, KeyError, TypeError) as wrong:
            self.answer(400, {"message": "the request is not understood: %s" % wrong})

    def do_GET(self):
        if self.path.split("?")[0] == "/health":
            return self.answer(200, "OK")
        if self.path.split("?")[0] == "/contexts":
            return self.answer(200, [shown(kernel) for kernel in list(contexts.all.values())])
        self.answer(404, {"message": "not found"})

    def do_POST(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts == ["execute"]:
            return self.handle_one(self.execute)
        if parts == ["contexts"]:
            return self.handle_one(self.create)
        if len(parts) == 3 and parts[0] == "contexts" and parts[2] == "restart":
            return self.handle_one(lambda: self.answer(200, contexts.restart(parts[1])))
        self.answer(404, {"message": "not found"})

    def do_DELETE(self):
        parts = self.path.split("?")[0].strip("/").split("/")
        if len(parts) == 2 and parts[0] == "contexts":
            return self.handle_one(lambda: self.answer(200, contexts.remove(parts[1])))
        self.answer(404, {"message": "not found"})

    def create(self):
        asked = self.body()
        self.answer(200, shown(contexts.create(asked.get("language"), asked.get("cwd") or os.getcwd())))

    def execute(self):
        asked = self.body()
        code, id = asked["code"], asked.get("context_id")
        kernel = contexts.get(id) if id else contexts.of_language(asked.get("language"))
        with kernel.turn:
            messages = kernel.execute(code, asked.get("env_vars") or {})
            first = next(messages)
            self.send_response(200)
            self.send_header("content-type", "application/x-ndjson")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.say(kernel, first)
            is_there = True
            for message in messages:
                is_there = is_there and self.say(kernel, message)
            if is_there:
                self.wfile.write(b"0\r\n\r\n")

    def say(self, kernel, message):
        data = json.dumps(message).encode() + b"\n"
        try:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            return True
        except OSError:
            # Nobody waits for it any more.
            self.close_connection = True
            kernel.interrupt()
            return False


if __name__ == "__main__":
    ThreadingHTTPServer.daemon_threads = True
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
`
