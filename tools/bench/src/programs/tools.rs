//! Third-party benchmarks and tools: they are started with arguments, and their output is parsed.

use super::child::{Launcher, number_after};
use super::place::{Place, film, text};
use super::program::{Done, Job, Size};
use crate::harness::{Failure, check};
use std::fs;

/// RocksDB, eight writers of one database. Its write queue parks on condition variables (spinning
/// with `yield` is turned off). Each run uses a new database.
pub(super) fn db_bench_fill(place: Place, size: Size) -> Result<Job, Failure> {
    let each = size.of(10_000);
    Ok(Box::new(move |launcher: &Launcher| {
        let database = place.path("filled");
        let arguments = [
            "--benchmarks=fillrandom".to_owned(),
            "--enable_write_thread_adaptive_yield=false".to_owned(),
            "--threads=8".to_owned(),
            format!("--num={each}"),
            format!("--db={}", database.display()),
        ];
        let ended = launcher.run(&place, "db_bench", arguments)?;
        fs::remove_dir_all(&database).map_err(Failure::new)?;
        db_bench_done(ended, "fillrandom", 8 * each, Vec::new())
    }))
}

/// RocksDB, eight readers of one database through a block cache with one shard, so that all share
/// one mutex.
pub(super) fn db_bench_read(place: Place, size: Size) -> Result<Job, Failure> {
    const KEYS: u64 = 50_000;
    let each = size.of(20_000);
    let database = format!("--db={}", place.path("read").display());
    let mut is_filled = false;
    Ok(Box::new(move |launcher: &Launcher| {
        let keys = format!("--num={KEYS}");
        if !is_filled {
            let fill = ["--benchmarks=fillseq,compact", &keys, &database];
            launcher.run_plain(&place, "db_bench", fill)?;
            is_filled = true;
        }
        let reads = format!("--reads={each}");
        let arguments = [
            "--benchmarks=readrandom",
            "--use_existing_db",
            "--cache_numshardbits=0",
            "--cache_size=4000000",
            "--threads=8",
            &keys,
            &reads,
            &database,
        ];
        let ended = launcher.run(&place, "db_bench", arguments)?;
        let found = format!("({each} of {each} found)");
        check(ended.said().contains(&found), || format!("expected {found}:\n{}", ended.said()))?;
        db_bench_done(ended, "readrandom", 8 * each, found.into_bytes())
    }))
}

fn db_bench_done(
    ended: super::child::Ended,
    benchmark: &str,
    operations: u64,
    same: Vec<u8>,
) -> Result<Done, Failure> {
    let said = ended.said();
    let line = said.lines().find(|line| line.starts_with(benchmark));
    let line = line.ok_or_else(|| Failure::new(format!("no {benchmark} line:\n{said}")))?;
    check(line.contains(&format!(" {operations} operations")), || {
        format!("expected {operations} operations: {line}")
    })?;
    Ok(Done { operations, seconds: number_after(line, "ops/sec")?, usage: ended.usage, same })
}

/// sysbench's own pattern: eight threads; an event is a thousand times lock, yield, unlock, of one
/// of eight mutexes.
pub(super) fn sysbench_threads(place: Place, size: Size) -> Result<Job, Failure> {
    let events = size.of(1000);
    Ok(Box::new(move |launcher: &Launcher| {
        let count = format!("--events={events}");
        let arguments = ["threads", "--threads=8", "--time=0", &count, "run"];
        let ended = launcher.run(&place, "sysbench", arguments)?;
        let said = ended.said();
        check(number_after(&said, "total number of events:") == Ok(events as f64), || {
            format!("expected {events} events:\n{said}")
        })?;
        Ok(Done {
            operations: events,
            seconds: number_after(&said, "total time:")?,
            usage: ended.usage,
            same: Vec::new(),
        })
    }))
}

/// sysbench's own pattern: eight threads, few mutexes, a short loop under them.
pub(super) fn sysbench_mutex(place: Place, size: Size) -> Result<Job, Failure> {
    let locks = size.of(500_000);
    Ok(Box::new(move |launcher: &Launcher| {
        let arguments =
            format!("mutex --threads=8 --mutex-num=4 --mutex-loops=20 --mutex-locks={locks} run");
        let ended = launcher.run(&place, "sysbench", arguments.split(' '))?;
        let said = ended.said();
        check(number_after(&said, "total number of events:") == Ok(8.0), || {
            format!("expected 8 events:\n{said}")
        })?;
        Ok(Done {
            operations: 8 * locks,
            seconds: number_after(&said, "total time:")?,
            usage: ended.usage,
            same: Vec::new(),
        })
    }))
}

/// x264 with four threads; the file it writes must always be the same.
pub(super) fn x264(
    place: Place,
    size: Size,
    options: &'static [&'static str],
) -> Result<Job, Failure> {
    let frames = size.of(60) as usize;
    place.write("film.i420", film(640, 360, frames))?;
    Ok(Box::new(move |launcher: &Launcher| {
        let usual = "--threads 4 --demuxer raw --input-csp i420 --input-res 640x360 --fps 30 \
                     --preset veryfast -o film.264 film.i420";
        let arguments = options.iter().copied().chain(usual.split(' '));
        let ended = launcher.run(&place, "x264", arguments)?;
        Ok(Done {
            operations: frames as u64,
            seconds: ended.seconds,
            usage: ended.usage,
            same: place.read("film.264")?,
        })
    }))
}

/// ffmpeg generates a film, filters and encodes it with four threads each; the checksum over all
/// frames must always be the same.
pub(super) fn ffmpeg(place: Place, size: Size) -> Result<Job, Failure> {
    let frames = size.of(60);
    Ok(Box::new(move |launcher: &Launcher| {
        let arguments = format!(
            "-v error -filter_threads 4 -f lavfi -i testsrc2=size=640x360:rate=30 \
             -frames:v {frames} -vf hflip,boxblur=2 -threads 4 -c:v libx264 -preset veryfast \
             -f md5 -"
        );
        let ended = launcher.run(&place, "ffmpeg", arguments.split(' '))?;
        Ok(Done {
            operations: frames,
            seconds: ended.seconds,
            usage: ended.usage,
            same: ended.stdout,
        })
    }))
}

/// A tool that compresses a file to its standard output, working on several blocks in parallel.
pub(super) fn compressor(
    place: Place,
    size: Size,
    tool: &'static str,
    options: &'static [&'static str],
) -> Result<Job, Failure> {
    let bytes = size.of(8 << 20) as usize;
    place.write("input", text(bytes))?;
    Ok(Box::new(move |launcher: &Launcher| {
        let ended = launcher.run(&place, tool, options.iter().chain(&["-k", "-c", "input"]))?;
        Ok(Done {
            operations: (bytes >> 20) as u64,
            seconds: ended.seconds,
            usage: ended.usage,
            same: ended.stdout,
        })
    }))
}

/// Raw futex calls with a wrong expected value, on a thousand words per thread.
pub(super) fn perf_hash(place: Place, size: Size) -> Result<Job, Failure> {
    let seconds = size.of(1);
    Ok(Box::new(move |launcher: &Launcher| {
        let arguments = format!("bench futex hash -s -t 4 -r {seconds}");
        let ended = launcher.run(&place, "perf", arguments.split(' '))?;
        let said = ended.said();
        // The average is per thread.
        let rate = number_after(&said, "Averaged")?;
        Ok(Done {
            operations: (4.0 * rate * seconds as f64) as u64,
            seconds: seconds as f64,
            usage: ended.usage,
            same: Vec::new(),
        })
    }))
}

/// Raw futex calls: threads go to sleep and are woken or requeued, ten times; timed by perf's own
/// clock.
pub(super) fn perf_futex(place: Place, size: Size, kind: &'static str) -> Result<Job, Failure> {
    let threads = match size {
        Size::Short => 64,
        Size::Long => 512,
    };
    Ok(Box::new(move |launcher: &Launcher| {
        let count = threads.to_string();
        let ended = launcher.run(&place, "perf", ["bench", "futex", kind, "-s", "-t", &count])?;
        let said = ended.said();
        let milliseconds = number_after(&said, "threads in")?;
        Ok(Done {
            operations: threads,
            seconds: milliseconds / 1e3,
            usage: ended.usage,
            same: Vec::new(),
        })
    }))
}

/// A stress-ng stressor with four workers; stress-ng counts the operations itself.
pub(super) fn stress(place: Place, size: Size, kind: &'static str) -> Result<Job, Failure> {
    let seconds = size.of(1);
    Ok(Box::new(move |launcher: &Launcher| {
        let (option, time) = (format!("--{kind}"), seconds.to_string());
        let arguments = [&option, "4", "--timeout", &time, "--metrics-brief"];
        let ended = launcher.run(&place, "stress-ng", arguments)?;
        let said = ended.said();
        let line = said
            .lines()
            .find(|line| line.contains("metrc:") && line.contains(&format!(" {kind} ")))
            .ok_or_else(|| Failure::new(format!("no {kind} line:\n{said}")))?;
        let figures = line.split_once(kind).map_or("", |(_, rest)| rest);
        let mut figures = figures.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(operations)), Some(Ok(took))) = (figures.next(), figures.next()) else {
            return Err(Failure::new(format!("no figures: {line}")));
        };
        Ok(Done {
            operations: operations as u64,
            seconds: took,
            usage: ended.usage,
            same: Vec::new(),
        })
    }))
}
