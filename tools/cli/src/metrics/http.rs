//! A server for a few small answers to GET.
//!
//! Each connection has a thread, one request, and a few seconds from its beginning to its end.
//! There are [`MOST_CONNECTIONS`] at most: for one more, the oldest is closed. So clients that send
//! or read slowly, or not at all, however many they are, do not keep others out, who need only a
//! moment.
//!
//! A web page can have a name of its own resolved to this machine's address, and then read answers
//! in the browser of someone who may connect (DNS rebinding). Its requests are for that name. So
//! requests for names that are not known are refused.

use anyhow::Result;
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For one more, the oldest is closed.
const MOST_CONNECTIONS: usize = 32;
/// Threads that have not noticed yet that their connection was closed may exist beside those. For
/// one more, one of them has to end first.
const MOST_THREADS: usize = 2 * MOST_CONNECTIONS;
/// How long that may take. Otherwise the new connection is closed.
const TO_END: Duration = Duration::from_secs(1);
/// How long a request may take to arrive.
const TO_READ: Duration = Duration::from_secs(3);
/// How long the client may take to read the answer.
const TO_WRITE: Duration = Duration::from_secs(10);
/// How long it may take to close the connection then.
const TO_CLOSE: Duration = Duration::from_secs(1);
/// The longest request, in bytes, and the most headers.
const LONGEST: usize = 8192;
const MOST_HEADERS: usize = 64;

/// A GET request.
#[derive(Debug)]
pub(super) struct Request {
    /// The path, as it was sent.
    pub(super) path: String,
    /// What follows its question mark.
    pub(super) query: String,
    /// The header `Accept`.
    pub(super) accept: Option<String>,
}

/// An answer.
#[derive(Debug)]
pub(super) struct Response {
    status: u16,
    kind: &'static str,
    body: Vec<u8>,
}

impl Response {
    pub(super) fn ok(kind: &'static str, body: Vec<u8>) -> Self {
        Self { status: 200, kind, body }
    }

    pub(super) fn text(text: String) -> Self {
        Self::error(200, text)
    }

    pub(super) fn error(status: u16, text: String) -> Self {
        Self { status, kind: "text/plain; charset=utf-8", body: text.into() }
    }

    fn head(&self) -> String {
        let reason = match self.status {
            200 => "OK",
            400 => "Bad Request",
            404 => "Not Found",
            405 => "Method Not Allowed",
            408 => "Request Timeout",
            421 => "Misdirected Request",
            431 => "Request Header Fields Too Large",
            _ => "Internal Server Error",
        };
        let allow = if self.status == 405 { "Allow: GET\r\n" } else { "" };
        format!(
            "HTTP/1.1 {} {reason}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{allow}\
             X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
            self.status,
            self.kind,
            self.body.len(),
        )
    }
}

/// Answers requests from now on, on threads of their own, until the process ends: those for an
/// address, for `localhost` and for these names.
///
/// # Errors
/// There is no thread.
pub(super) fn serve(
    listener: TcpListener,
    names: Vec<String>,
    answer: impl Fn(Request) -> Response + Send + Sync + 'static,
) -> Result<()> {
    let answer = Arc::new((names, answer));
    let open = Arc::new(Open::default());
    std::thread::Builder::new().name("http".to_owned()).spawn(move || {
        loop {
            let Ok((stream, _)) = listener.accept() else {
                // No file descriptor is free, for example: not again at once.
                std::thread::sleep(Duration::from_millis(100));
                continue;
            };
            let Some(connection) = Connection::begin(&open, stream) else {
                continue;
            };
            let answer = Arc::clone(&answer);
            let begun = std::thread::Builder::new().name("request".to_owned()).spawn(move || {
                // A client that has gone does not matter.
                let (names, answer) = &*answer;
                let _ = converse(&connection.stream, names, answer);
            });
            // No thread: the connection is closed.
            drop(begun);
        }
    })?;
    Ok(())
}

/// The connections that are open, the oldest first.
#[derive(Debug, Default)]
struct Connections {
    open: VecDeque<Arc<TcpStream>>,
    threads: usize,
}

/// The same, for all threads.
#[derive(Debug, Default)]
struct Open {
    connections: Mutex<Connections>,
    /// A thread has ended.
    ended: Condvar,
}

impl Open {
    fn lock(&self) -> MutexGuard<'_, Connections> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counts as open until it is dropped.
struct Connection {
    all: Arc<Open>,
    stream: Arc<TcpStream>,
}

impl Connection {
    /// One more. `None` if there are too many threads.
    fn begin(all: &Arc<Open>, stream: TcpStream) -> Option<Self> {
        let is_full = |connections: &mut Connections| connections.threads >= MOST_THREADS;
        let waited = all.ended.wait_timeout_while(all.lock(), TO_END, is_full);
        let (mut connections, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        if connections.open.len() >= MOST_CONNECTIONS
            && let Some(oldest) = connections.open.pop_front()
        {
            // Its thread notices at once.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let stream = Arc::new(stream);
        connections.open.push_back(Arc::clone(&stream));
        connections.threads += 1;
        Some(Self { all: Arc::clone(all), stream })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut connections = self.all.lock();
        connections.open.retain(|other| !Arc::ptr_eq(other, &self.stream));
        connections.threads -= 1;
        self.all.ended.notify_one();
    }
}

fn converse(
    stream: &TcpStream,
    names: &[String],
    answer: &(dyn Fn(Request) -> Response + Send + Sync),
) -> io::Result<()> {
    let deadline = Instant::now() + TO_READ;
    let mut bytes = Vec::new();
    let response = loop {
        let mut part = [0; 1024];
        match read_until(stream, &mut part, deadline) {
            Ok(0) => return Ok(()),
            Ok(len) => bytes.extend_from_slice(&part[..len]),
            Err(error) if is_late(&error) => {
                break Response::error(408, "too slow\n".to_owned());
            }
            Err(error) => return Err(error),
        }
        if let Some(response) = respond(&bytes, names, answer) {
            break response;
        }
        if bytes.len() > LONGEST {
            break Response::error(431, "too long\n".to_owned());
        }
    };
    send(stream, &response)
}

/// The answer, once the request is complete.
fn respond(
    bytes: &[u8],
    names: &[String],
    answer: &dyn Fn(Request) -> Response,
) -> Option<Response> {
    let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => {
            return Some(Response::error(431, "too many headers\n".to_owned()));
        }
        Err(error) => return Some(Response::error(400, format!("{error}\n"))),
    }
    if request.method != Some("GET") {
        return Some(Response::error(405, "only GET\n".to_owned()));
    }
    let mut hosts = request.headers.iter().filter(|it| it.name.eq_ignore_ascii_case("host"));
    if !hosts.all(|host| is_known(host.value, names)) {
        let why = "requests for this host name are not answered (--host NAME)\n";
        return Some(Response::error(421, why.to_owned()));
    }
    let target = request.path.unwrap_or("/");
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let accept = request.headers.iter().find(|it| it.name.eq_ignore_ascii_case("accept"));
    let accept = accept.and_then(|header| core::str::from_utf8(header.value).ok());
    let (path, query, accept) = (path.to_owned(), query.to_owned(), accept.map(str::to_owned));
    Some(answer(Request { path, query, accept }))
}

/// Whether a value of `Host` is an address, `localhost` or one of these names, with or without a
/// port.
fn is_known(host: &[u8], names: &[String]) -> bool {
    let Ok(host) = core::str::from_utf8(host) else {
        return false;
    };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|it| it.is_ascii_digit()) => name,
        _ => host,
    };
    let inside = name.strip_prefix('[').and_then(|name| name.strip_suffix(']'));
    let mut known = names.iter().map(String::as_str).chain(["localhost"]);
    inside.unwrap_or(name).parse::<IpAddr>().is_ok()
        || known.any(|known| known.eq_ignore_ascii_case(name))
}

fn send(stream: &TcpStream, response: &Response) -> io::Result<()> {
    let deadline = Instant::now() + TO_WRITE;
    for mut rest in [response.head().as_bytes(), &response.body] {
        while !rest.is_empty() {
            stream.set_write_timeout(Some(time_left(deadline)?))?;
            match (&*stream).write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(len) => rest = &rest[len..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
    close(stream)
}

/// Ends the connection, without resetting it.
fn close(stream: &TcpStream) -> io::Result<()> {
    // What has arrived and was not read would reset the connection, before the client has read the
    // answer.
    stream.shutdown(Shutdown::Write)?;
    let deadline = Instant::now() + TO_CLOSE;
    let (mut rest, mut len) = ([0; 1024], 0);
    while len < 8 * LONGEST {
        match read_until(stream, &mut rest, deadline)? {
            0 => break,
            more => len += more,
        }
    }
    Ok(())
}

fn read_until(stream: &TcpStream, part: &mut [u8], deadline: Instant) -> io::Result<usize> {
    loop {
        stream.set_read_timeout(Some(time_left(deadline)?))?;
        match (&*stream).read(part) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Not zero, which would mean forever.
fn time_left(deadline: Instant) -> io::Result<Duration> {
    match deadline.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(io::ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

fn is_late(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let answer = |request: Request| {
            Response::text(format!("{} {} {:?}", request.path, request.query, request.accept))
        };
        serve(listener, vec!["x".to_owned()], answer).unwrap();
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(request).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn only_whole_get_requests_are_answered() {
        let _watchdog = waitword_testkit::watch();
        let address = server();
        let answer = ask(address, b"GET /a/b?c=d HTTP/1.1\r\nhost: x\r\nACCEPT: e/f\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
        assert!(answer.contains("Content-Length: 20\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\n/a/b c=d Some(\"e/f\")"), "{answer}");
        assert!(ask(address, b"POST / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert!(ask(address, b"\x16\x03\x01 TLS\r\n\r\n").starts_with("HTTP/1.1 400 "));
        let long = [&b"GET /"[..], &[b'a'; LONGEST + 1000], b" HTTP/1.1"].concat();
        assert!(ask(address, &long).starts_with("HTTP/1.1 431 "));
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(MOST_HEADERS + 1));
        assert!(ask(address, many.as_bytes()).starts_with("HTTP/1.1 431 "));
    }

    #[test]
    fn a_name_that_anybody_could_have_is_refused() {
        let names = ["metrics.example".to_owned()];
        for host in
            ["127.0.0.1", "10.0.0.7:9643", "[::1]:80", "[::1]", "LocalHost:1", "metrics.example:9"]
        {
            assert!(is_known(host.as_bytes(), &names), "{host}");
        }
        for host in ["", "evil.example", "evil.example:9643", "127.0.0.1.evil.example", "a:b", "é"]
        {
            assert!(!is_known(host.as_bytes(), &names), "{host}");
        }
        assert!(!is_known(b"\xff", &names));
        let _watchdog = waitword_testkit::watch();
        let answer = ask(server(), b"GET / HTTP/1.1\r\nHost: x\r\nHost: evil\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 421 Misdirected Request\r\n"), "{answer}");
    }

    /// Clients that send nothing, or very slowly, hinder no others, and are let go.
    #[test]
    fn slow_clients_do_not_keep_others_out() {
        let _watchdog = waitword_testkit::watch();
        let address = server();
        let mut slow: Vec<TcpStream> =
            (0..3 * MOST_CONNECTIONS).map(|_| TcpStream::connect(address).unwrap()).collect();
        let answer = ask(address, b"GET / HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        // A byte now and then does not help.
        let mut drop_by_drop = slow.pop().unwrap();
        let sender = drop_by_drop.try_clone().unwrap();
        std::thread::spawn(move || {
            while (&sender).write_all(b"G").is_ok() {
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let mut answer = Vec::new();
        // It may be reset, because it has sent more than was read.
        let _ = drop_by_drop.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer).into_owned();
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
        for (n, mut stream) in slow.into_iter().enumerate() {
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            // The first ones were closed for those that came later.
            let was_closed = n < 2 * MOST_CONNECTIONS;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{n}: {answer}");
            assert!(answer.is_empty() || !was_closed, "{n}: {answer}");
        }
    }
}
