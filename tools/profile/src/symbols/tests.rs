//! Names are found, and never in a file that is another one.

use super::*;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn names_are_demangled() {
    assert_eq!([demangle("main"), demangle("f"), demangle("w")], ["main", "f", "w"]);
    assert_eq!(demangle("_ZN3std4sync5mutex17h0123456789abcdefE"), "std::sync::mutex");
    assert_eq!(demangle("_ZNSt5mutex4lockEv"), "std::mutex::lock");
}

#[test]
fn this_test_is_found_by_its_address() {
    let mut process = Process::default();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    process.maps = crate::read::mappings(&maps);
    let here = this_test_is_found_by_its_address as fn() as usize as u64 + 4;
    let mut symbols = Symbols::of(&process);
    let frames = symbols.frames(here).to_vec();
    let frame = frames.last().unwrap();
    assert!(frame.function.ends_with("this_test_is_found_by_its_address"), "{frames:?}");
    assert_eq!(symbols.frames(0x10)[0].function, "0x10");
}

fn run(program: &str, arguments: &[&str], place: &Path) {
    let mut command = Command::new(program);
    let output = command.args(arguments).current_dir(place).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A process that has executed `program`, and an address in its function `wanted`. As usual, the
/// mapping begins with the page where the code begins.
fn process(program: &Path, build_id: &[u8], address: u64) -> (Process, u64) {
    let page = address & !0xfff;
    let mapping = Mapping {
        start: 0x50_0000 + page,
        end: 0x60_0000,
        offset: page,
        file: program.to_owned(),
        build_id: build_id.to_vec(),
    };
    let process =
        Process { maps: vec![mapping], began_realtime: u64::MAX / 2, ..Process::default() };
    (process, 0x50_0000 + address + 2)
}

/// The first frame, and what is said of the files.
fn name(process: &Process, address: u64, directories: &[PathBuf]) -> (Frame, Vec<String>) {
    let files = Rc::new(Files::new(directories));
    let frame = Symbols::with(process, files.clone()).frames(address)[0].clone();
    (frame, files.complaints())
}

#[test]
fn a_file_with_another_build_id_is_not_used_but_one_of_the_directories_is() {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let source = "__attribute__((noinline)) int wanted(int n) {\n\treturn n * 3 + 1;\n}\n\
                  int other(int n) { return wanted(n) - 1; }\n";
    std::fs::write(place.join("a.c"), source).unwrap();
    let id = "-Wl,--build-id=0x00112233445566778899aabbccddeeff";
    // In such a small file, an offset is the address.
    let build = |to: &str, id: &str| {
        run("cc", &["-g", "-O1", "-shared", "-fPIC", "-o", to, id, "a.c"], place);
    };
    build("a.so", id);
    build("other.so", "-Wl,--build-id=0xff");
    let build_id: Vec<u8> = (0..16).map(|n| n * 0x11).collect();
    let bytes = std::fs::read(place.join("a.so")).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    use object::{Object as _, ObjectSymbol as _};
    let address = elf.symbols().find(|it| it.name() == Ok("wanted")).unwrap().address();

    // The file itself.
    let program = place.join("a.so");
    let (process_of_it, at) = process(&program, &build_id, address);
    let (frame, complaints) = name(&process_of_it, at, &[]);
    assert_eq!((frame.function.as_str(), complaints.len()), ("wanted", 0));
    let (file, line) = frame.line.unwrap();
    assert!(file.ends_with("a.c") && line <= 3, "{file}:{line}");

    // Stripped: the names are in another file.
    run("objcopy", &["--only-keep-debug", "a.so", "a.so.debug"], place);
    run("strip", &["a.so"], place);
    let (frame, _) = name(&process_of_it, at, &[]);
    assert_eq!((frame.function.as_str(), frame.line), ("wanted", None), "exported");
    let (frame, complaints) = name(&process_of_it, at, &[place.to_owned()]);
    assert!(frame.line.is_some() && complaints.is_empty(), "{frame:?} {complaints:?}");

    // Built again: another ID. It has the same name and other contents.
    std::fs::copy(place.join("other.so"), &program).unwrap();
    let (frame, complaints) = name(&process_of_it, at, &[]);
    assert_eq!(frame.function, format!("a.so+{:#x}", address + 2));
    assert_eq!(complaints.len(), 1);
    assert!(complaints[0].contains("build ID 00112233445566778899aabbccddeeff"), "{complaints:?}");

    // Only the debug file is right, by its name or by its build ID.
    for to in ["flat", "by-id/.build-id/00", "by-id-without-folder/00"] {
        std::fs::create_dir_all(place.join(to)).unwrap();
    }
    let debug = place.join("a.so.debug");
    for to in [
        "flat/a.so.debug",
        "by-id/.build-id/00/112233445566778899aabbccddeeff.debug",
        "by-id-without-folder/00/112233445566778899aabbccddeeff.debug",
    ] {
        std::fs::copy(&debug, place.join(to)).unwrap();
        let directory = place.join(to.split('/').next().unwrap());
        let (frame, complaints) = name(&process_of_it, at, &[directory]);
        assert_eq!((frame.function.as_str(), complaints.len()), ("wanted", 0), "{to}");
        assert!(frame.line.is_some(), "{to}");
    }

    // Nothing was recorded, and the file is younger than the recording.
    let (mut without, at) = process(&program, &[], address);
    assert!(name(&without, at, &[]).1.is_empty());
    without.began_realtime = 1;
    let (frame, complaints) = name(&without, at, &[]);
    assert!(frame.function.starts_with("a.so+"), "{frame:?}");
    assert!(complaints[0].ends_with("has changed since the recording"), "{complaints:?}");
    // It is gone.
    std::fs::remove_file(&program).unwrap();
    assert!(name(&without, at, &[]).1[0].ends_with("is not here"));
}
