//! Servers, each with a load generator that is not on the drop-in: only the server is measured.
//!
//! For each run a server is started on a free port. It is ready when it accepts a connection. After
//! the load it is asked to end, and must do so successfully.

use super::child::{Child, Launcher, number_after};
use super::place::{Place, free_port, text};
use super::program::{Done, Job, Size};
use crate::harness::{Failure, check};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// How long a server may take until it accepts connections.
const READY: Duration = Duration::from_secs(30);
/// How long an answer may take.
const ANSWER: Duration = Duration::from_secs(30);

/// nginx with one worker, whose thread pool reads the files, under wrk. What it serves must equal
/// the files.
pub(super) fn nginx(place: Place, size: Size) -> Result<Job, Failure> {
    const FILES: usize = 16;
    let seconds = size.of(1);
    let content = text(FILES * 100_000);
    for (number, part) in content.chunks(100_000).enumerate() {
        place.write(&format!("file{number}"), part)?;
    }
    Ok(Box::new(move |launcher: &Launcher| {
        let port = free_port()?;
        let directory = place.directory().display().to_string();
        let configuration = format!(
            "user root; worker_processes 1; daemon off; pid nginx.pid; error_log stderr warn;
            thread_pool readers threads=8 max_queue=65536;
            events {{ worker_connections 512; }}
            http {{
                access_log off; sendfile off; aio threads=readers; output_buffers 2 32k;
                client_body_temp_path t1; proxy_temp_path t2; fastcgi_temp_path t3; \
                uwsgi_temp_path t4; scgi_temp_path t5;
                server {{ listen 127.0.0.1:{port}; root {directory}; }}
            }}"
        );
        place.write("nginx.conf", configuration)?;
        let arguments = ["-p", &directory, "-c", "nginx.conf", "-e", "stderr"];
        let mut server = launcher.start(&place, "nginx", arguments)?;
        drop(connect(port, &mut server)?);
        let mut same = Vec::new();
        for number in 0..FILES {
            same.extend(get(port, &format!("/file{number}"))?);
        }
        check(same == content, || "the response differs from the file".to_owned())?;
        let (url, time) = (format!("http://127.0.0.1:{port}/file3"), format!("{seconds}s"));
        let load =
            launcher.run_plain(&place, "wrk", ["-t", "2", "-c", "32", "-d", &time, &url])?.said();
        let ended = server.stop(libc::SIGQUIT)?;
        for bad in ["Socket errors", "Non-2xx"] {
            check(!load.contains(bad), || load.clone())?;
        }
        let requests = load
            .lines()
            .find(|line| line.contains(" requests in "))
            .ok_or_else(|| Failure::new(&load))?;
        let operations = number_after(requests, "")?;
        Ok(Done {
            operations: operations as u64,
            seconds: operations / number_after(&load, "Requests/sec:")?,
            usage: ended.usage,
            same,
        })
    }))
}

/// redis with I/O threads and one thread that writes its log, loaded by redis-benchmark.
pub(super) fn redis(place: Place, size: Size) -> Result<Job, Failure> {
    let requests = size.of(20_000);
    Ok(Box::new(move |launcher: &Launcher| {
        let port = free_port()?;
        let port_text = port.to_string();
        let arguments = [
            "--port",
            &port_text,
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "yes",
            "--appendfsync",
            "everysec",
            "--io-threads",
            "2",
            "--io-threads-do-reads",
            "yes",
            "--daemonize",
            "no",
        ];
        let mut server = launcher.start(&place, "redis-server", arguments)?;
        drop(connect(port, &mut server)?);
        let started = Instant::now();
        let load = format!("-p {port} -c 32 -n {requests} -t set,incr,lpush,lpop -P 4 -q");
        launcher.run_plain(&place, "redis-benchmark", load.split(' '))?;
        let seconds = started.elapsed().as_secs_f64();
        let mut connection = connect(port, &mut server)?;
        connection.write_all(b"GET counter:__rand_int__\r\n").map_err(Failure::new)?;
        let mut answer = [0; 64];
        let length = connection.read(&mut answer).map_err(Failure::new)?;
        drop(connection);
        let ended = server.stop(libc::SIGTERM)?;
        let _ = std::fs::remove_dir_all(place.path("appendonlydir"));
        Ok(Done {
            operations: 4 * requests,
            seconds,
            usage: ended.usage,
            // Each INCR incremented this counter.
            same: answer[..length].to_vec(),
        })
    }))
}

/// memcached with four threads. Eight connections of ours write and read; each value read must be
/// the one that was written.
pub(super) fn memcached(place: Place, size: Size) -> Result<Job, Failure> {
    let each = size.of(5000);
    Ok(Box::new(move |launcher: &Launcher| {
        let port = free_port()?;
        let text = port.to_string();
        let arguments = ["-u", "root", "-l", "127.0.0.1", "-U", "0", "-t", "4", "-p", &text];
        let mut server = launcher.start(&place, "memcached", arguments)?;
        drop(connect(port, &mut server)?);
        let started = Instant::now();
        let answers: Vec<Result<(), Failure>> = std::thread::scope(|scope| {
            let load = |number| scope.spawn(move || set_and_get(port, number, each));
            let loaders: Vec<_> = (0..8).map(load).collect();
            let join =
                |loader: std::thread::ScopedJoinHandle<_>| loader.join().expect("does not panic");
            loaders.into_iter().map(join).collect()
        });
        let seconds = started.elapsed().as_secs_f64();
        answers.into_iter().collect::<Result<(), Failure>>()?;
        let ended = server.stop(libc::SIGTERM)?;
        Ok(Done {
            operations: 8 * 2 * each,
            seconds,
            usage: ended.usage,
            same: b"every value".to_vec(),
        })
    }))
}

fn set_and_get(port: u16, loader: u64, each: u64) -> Result<(), Failure> {
    let talk = || -> std::io::Result<Option<String>> {
        let mut to = TcpStream::connect(("127.0.0.1", port))?;
        to.set_nodelay(true)?;
        to.set_read_timeout(Some(ANSWER))?;
        let mut from = BufReader::new(to.try_clone()?);
        let mut line = String::new();
        for item in 0..each {
            // Few keys: values are replaced while other threads serve other keys of the same table.
            let (key, value) = (item % 1000, format!("{loader}.{item}"));
            write!(to, "set {loader}.{key} 0 0 {}\r\n{value}\r\n", value.len())?;
            write!(to, "get {loader}.{key}\r\n")?;
            for wanted in ["STORED", "VALUE", &value, "END"] {
                line.clear();
                from.read_line(&mut line)?;
                if !line.starts_with(wanted) {
                    return Ok(Some(format!("received {line:?} instead of {wanted:?}")));
                }
            }
        }
        Ok(None)
    };
    match talk() {
        Ok(None) => Ok(()),
        Ok(Some(wrong)) => Err(Failure::new(wrong)),
        Err(error) => Err(Failure::new(format!("connection to the server: {error}"))),
    }
}

/// Connects to a server as soon as it accepts a connection.
fn connect(port: u16, server: &mut Child) -> Result<TcpStream, Failure> {
    let started = Instant::now();
    loop {
        server.is_running()?;
        match TcpStream::connect(("127.0.0.1", port)) {
            Ok(connection) => {
                connection.set_read_timeout(Some(ANSWER)).map_err(Failure::new)?;
                return Ok(connection);
            }
            Err(error) if started.elapsed() > READY => {
                return Err(Failure::new(format!("the server accepts no connection: {error}")));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Fetches this path from a web server.
fn get(port: u16, path: &str) -> Result<Vec<u8>, Failure> {
    let ask = || -> std::io::Result<Vec<u8>> {
        let mut connection = TcpStream::connect(("127.0.0.1", port))?;
        connection.set_read_timeout(Some(ANSWER))?;
        write!(connection, "GET {path} HTTP/1.0\r\n\r\n")?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer)?;
        Ok(answer)
    };
    let answer = ask().map_err(|error| Failure::new(format!("GET {path}: {error}")))?;
    let end = answer.windows(4).position(|part| part == b"\r\n\r\n");
    match end {
        Some(end) if answer.starts_with(b"HTTP/1.1 200") => Ok(answer[end + 4..].to_vec()),
        _ => Err(Failure::new(format!("GET {path}: {}", String::from_utf8_lossy(&answer)))),
    }
}
