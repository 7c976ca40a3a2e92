//! Creates a world of fake GPUs for manual experiments: `fake-world DIR [GPUS]`, and says how to use it.
#![expect(clippy::print_stdout, reason = "a program that talks to its user")]

use std::path::Path;

use cohabit_fakes::{FakeGpu, FakeWorld, WORLD_VARIABLE, examples};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or_else(|| std::io::Error::other("usage: fake-world DIR [GPUS]"))?;
    let number = arguments.next().map_or(Ok(1), |text| text.parse()).map_err(std::io::Error::other)?;
    let world = FakeWorld::create(Path::new(&folder), (0..number).map(FakeGpu::numbered).collect())?;
    let installed = world.install(&examples()?)?;
    println!("export {WORLD_VARIABLE}={}", world.root().display());
    println!("export PATH={}:$PATH", installed.bin.display());
    println!("export COHABIT_NVML_LIBRARY={}", installed.nvml.display());
    println!("# a training: {} --steps 1000 --alloc 2G", installed.client.display());
    Ok(())
}
