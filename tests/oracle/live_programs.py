"""Programs that compute, to be looked at at random moments: name -> command line. What this machine does
not have is left out."""
import os
import random
import shutil
import subprocess

PYTHON_WORK = """
import json, re, hashlib, zlib, random
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    fib(16); d = json.dumps([{str(i): i * 1.5} for i in range(500)]); json.loads(d)
    re.findall(r"(\\d+)\\.(\\d)", d); zlib.compress(d.encode()); sorted(random.random() for _ in range(2000))
"""
CPP_WORK = """
#include <algorithm>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>
int main()
{
	for (unsigned round = 0;; round++) {
		std::map<std::string, std::vector<int>> index;
		for (int i = 0; i < 2000; i++)
			index[std::to_string(i * 7919 % 503)].push_back(i);
		std::ostringstream out;
		for (auto &[key, list] : index) {
			std::sort(list.begin(), list.end(), [](int a, int b) { return a % 13 < b % 13; });
			out << key << ':' << list.size() << '\\n';
		}
		std::string text = out.str();
		std::regex pattern("([0-9]+):([0-9])");
		if (std::distance(std::sregex_iterator(text.begin(), text.end(), pattern), std::sregex_iterator()) < 1)
			return 1;
		try {
			if (round % 3 == 0)
				throw std::runtime_error(text);
		} catch (const std::exception &) {
		}
	}
}
"""
RUST_WORK = """
use std::collections::{BTreeMap, HashMap};
fn words(text: &str) -> HashMap<String, usize> {
    let mut counts = HashMap::new();
    for word in text.split(' ') {
        *counts.entry(word.to_uppercase()).or_insert(0) += 1;
    }
    counts
}
fn round(n: u64) -> usize {
    let text: String = (0..3000u64).map(|i| format!("{:x} ", (i * n * 2654435761) % 4093)).collect();
    let sorted: BTreeMap<_, _> = words(&text).into_iter().collect();
    let mut list: Vec<_> = sorted.iter().map(|(k, v)| (v, k)).collect();
    list.sort_by(|a, b| b.cmp(a));
    list.len()
}
fn main() {
    let other = std::thread::spawn(|| (1..).map(round).sum::<usize>());
    (1..).map(round).sum::<usize>();
    other.join().unwrap();
}
"""
SQL_WORK = ("with recursive c(x) as (select 1 union all select x+1 from c where x<400000) "
            "select sum(x*x%7),count(distinct x%991) from c")


def endlessly(command):
    return ["/bin/sh", "-c", f"while :; do {command}; done"]


def compiled(source, binary, text, *command):
    with open(source, "w", encoding="ascii") as file:
        file.write(text)
    subprocess.run([*command, source, "-o", binary], check=True)
    return [binary]


def tools(big):
    for name, command in (("gzip", f"gzip -9 -c {big} >/dev/null"), ("xz", f"xz -c {big} >/dev/null"),
                          ("sort", f"tr ' ' '\\n' <{big} | sort >/dev/null"),
                          ("sqlite3", f"sqlite3 :memory: '{SQL_WORK}'")):
        if shutil.which(name):
            yield name, lambda command=command: endlessly(command)


def compilers(place):
    source, binary = os.path.join(place, "work.cpp"), os.path.join(place, "cpp-work")
    rustc = shutil.which("rustc") or shutil.which("rustc", path=os.path.expanduser("~/.cargo/bin"))
    with open(source, "w", encoding="ascii") as file:
        file.write(CPP_WORK)
    if shutil.which("g++"):
        yield "c++", lambda: compiled(source, binary, CPP_WORK, "g++", "-O2", "-g", "-std=c++17")
        yield "cc1plus", lambda: endlessly(f"g++ -O2 -std=c++17 -c {source} -o {binary}.o")
    if shutil.which("clang++"):
        yield "clang", lambda: endlessly(f"clang++ -O2 -std=c++17 -c {source} -o {binary}.o")
    if rustc:
        yield "rust", lambda: compiled(os.path.join(place, "work.rs"), os.path.join(place, "rust-work"), RUST_WORK,
                                       rustc, "-C", "opt-level=2", "-g")


def redis(place):
    """The server is the same program as redis-check-rdb, by its name; that one comes without a service."""
    server, path = os.path.join(place, "redis-server"), os.path.join(place, "redis.sock")
    os.symlink(shutil.which("redis-server") or shutil.which("redis-check-rdb"), server)
    return ["/bin/sh", "-c", f"{server} --port 0 --unixsocket {path} --save '' >/dev/null & s=$!; trap 'kill $s' EXIT; "
            f"while :; do redis-benchmark -s {path} -q -n 20000 >/dev/null; done"]


def programs(place):
    """name -> what makes its command line, with its files in `place`."""
    big = os.path.join(place, "big")
    generator = random.Random(1)
    with open(big, "wb") as file:
        for _ in range(64):
            file.write(bytes(generator.randrange(32, 64) for _ in range(1 << 16)) * 8)
    found = {"python3": lambda: ["/usr/bin/python3", "-c", PYTHON_WORK], **dict(tools(big)), **dict(compilers(place))}
    if shutil.which("redis-benchmark") and (shutil.which("redis-server") or shutil.which("redis-check-rdb")):
        found["redis"] = lambda: redis(place)
    return found
