//! A program's working directory, generated input, and ports.

use crate::harness::Failure;
use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A directory that is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Place(TempDir);

impl Place {
    /// Creates a new, empty directory.
    pub(crate) fn new() -> Result<Self, Failure> {
        let mut new = tempfile::Builder::new();
        // A server may run as another user.
        new.prefix("waitword-programs-").permissions(Permissions::from_mode(0o755));
        Ok(Self(new.tempdir().map_err(Failure::new)?))
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(super) fn directory(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file and returns its path.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> Result<PathBuf, Failure> {
        let path = self.path(name);
        fs::write(&path, content).map_err(|error| failed(&path, error))?;
        Ok(path)
    }

    pub(super) fn read(&self, name: &str) -> Result<Vec<u8>, Failure> {
        let path = self.path(name);
        fs::read(&path).map_err(|error| failed(&path, error))
    }
}

fn failed(path: &Path, error: std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

/// A port on which no process listens at the moment.
pub(super) fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(Failure::new)?;
    Ok(listener.local_addr().map_err(Failure::new)?.port())
}

/// Text that compresses to about a third: words of a small vocabulary in random order. The same in
/// every run.
pub(super) fn text(bytes: usize) -> Vec<u8> {
    let mut numbers = Numbers(1);
    let vocabulary: Vec<Vec<u8>> = (0..4096)
        .map(|_| {
            let length = 2 + numbers.below(8);
            let letters = (0..length).map(|_| b'a' + numbers.below(26) as u8);
            letters.chain([b' ']).collect()
        })
        .collect();
    let mut text = Vec::with_capacity(bytes + 16);
    while text.len() < bytes {
        text.extend_from_slice(&vocabulary[numbers.below(4096) as usize]);
    }
    text.truncate(bytes);
    text
}

/// A film as a sequence of frames, each one luma plane and two chroma planes (I420): a moving
/// gradient, a moving square, and grain.
pub(super) fn film(width: usize, height: usize, frames: usize) -> Vec<u8> {
    let mut numbers = Numbers(1);
    let mut film = Vec::with_capacity(width * height * frames * 3 / 2);
    for frame in 0..frames {
        let (left, top) = ((7 * frame) % (width - 64), (3 * frame) % (height - 64));
        for y in 0..height {
            for x in 0..width {
                let in_square = (left..left + 64).contains(&x) && (top..top + 64).contains(&y);
                let base = if in_square { 200 } else { (x + y + 2 * frame) / 4 % 180 };
                film.push(base as u8 + numbers.below(8) as u8);
            }
        }
        for y in 0..height / 2 {
            film.extend((0..width / 2).map(|x| (96 + (x + frame) % 64) as u8 ^ (y % 8) as u8));
        }
        for y in 0..height / 2 {
            film.extend((0..width / 2).map(|x| (96 + (y + frame) % 64) as u8 ^ (x % 8) as u8));
        }
    }
    film
}

/// Marsaglia's xorshift. Not `fastrand`'s generator: the programs' input would differ from that of
/// the published figures, and might change with its version.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_goes_away() {
        let place = Place::new().unwrap();
        let path = place.write("a", "content").unwrap();
        assert_eq!(place.read("a").unwrap(), b"content");
        drop(place);
        assert!(!path.exists());
    }

    #[test]
    fn input_is_as_long_as_asked_for_and_always_the_same() {
        assert_eq!(text(10_000).len(), 10_000);
        assert_eq!(text(10_000), text(10_000));
        assert_eq!(film(128, 96, 3).len(), 128 * 96 * 3 * 3 / 2);
    }
}
