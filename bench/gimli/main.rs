//! The engine of the Rust original, gimli's addr2line, as a program: gimli-addr2line FILE
//!
//! Addresses from the input, for each function and FILE:LINE of every inlined level to the output, names
//! as they are stored: what `addr2line -f -i -e FILE` prints. It does no more than has to be done: the file
//! is mapped, addresses are asked in the best order, memory is not given back at the end.
use object::{Object, ObjectSection};
use std::borrow::Cow;
use std::io::{BufRead, Write};

type Slice = gimli::EndianSlice<'static, gimli::LittleEndian>;

fn forever(data: Cow<'static, [u8]>) -> &'static [u8] {
    match data {
        Cow::Borrowed(bytes) => bytes,
        Cow::Owned(bytes) => Box::leak(bytes.into_boxed_slice()),
    }
}

fn dwarf_of(path: &str) -> gimli::Dwarf<Slice> {
    let file = std::fs::File::open(path).expect("open");
    let map: &'static memmap2::Mmap = Box::leak(Box::new(unsafe { memmap2::Mmap::map(&file).expect("map") }));
    let object: &'static object::File = Box::leak(Box::new(object::File::parse(&map[..]).expect("parse")));
    gimli::Dwarf::load(|id| -> Result<Slice, gimli::Error> {
        let section = object.section_by_name(id.name());
        let data = section.map_or(&[][..], |s| forever(s.uncompressed_data().expect("decompress")));
        Ok(gimli::EndianSlice::new(data, gimli::LittleEndian))
    })
    .expect("load")
}

/// Each with its place among them, in ascending order: neighbours share a unit, which is an eighth faster.
fn asked() -> Vec<(u64, usize)> {
    let number = |line: &str| u64::from_str_radix(line.trim_start_matches("0x"), 16).expect("address");
    let lines = std::io::stdin().lock().lines();
    let numbers = lines.map(|line| number(&line.expect("read")));
    let mut asked: Vec<(u64, usize)> = numbers.enumerate().map(|(place, address)| (address, place)).collect();
    asked.sort_unstable();
    asked
}

fn answer(context: &addr2line::Context<Slice>, address: u64, out: &mut Vec<u8>) {
    let mut frames = context.find_frames(address).expect("find");
    while let Some(frame) = frames.next().expect("frame") {
        let name = frame.function.as_ref().and_then(|function| function.raw_name().ok());
        let (file, line) = frame.location.map_or((None, None), |at| (at.file, at.line));
        let (name, file) = (name.as_deref().unwrap_or("??"), file.unwrap_or("??"));
        writeln!(out, "{}\n{}:{}", name, file, line.unwrap_or(0)).expect("answer");
    }
}

fn main() {
    let path = std::env::args().nth(1).expect("usage: gimli-addr2line FILE");
    let context = addr2line::Context::from_dwarf(dwarf_of(&path)).expect("context");
    let asked = asked();
    let mut text = Vec::new();
    let mut places = vec![0..0; asked.len()];

    for (address, place) in asked {
        let begin = text.len();
        answer(&context, address, &mut text);
        places[place] = begin..text.len();
    }
    let mut out = std::io::BufWriter::with_capacity(1 << 16, std::io::stdout());
    for place in places {
        out.write_all(&text[place]).expect("write");
    }
    out.flush().expect("write");
    std::process::exit(0);
}
