//! Builds ISA-L's deflate from the sources in the `isal-sys` crate, with `cc` and `nasm`.
//!
//! That crate's own build wants autotools, and builds all of ISA-L.  Without `nasm`, or on
//! anything but Linux on x86-64, nothing is built, and the library says that it is absent.

use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const C: [&str; 10] = [
    "crc/crc_base.c",
    "igzip/adler32_base.c",
    "igzip/encode_df.c",
    "igzip/flatten_ll.c",
    "igzip/huff_codes.c",
    "igzip/hufftables_c.c",
    "igzip/igzip.c",
    "igzip/igzip_base.c",
    "igzip/igzip_icf_base.c",
    "igzip/igzip_icf_body.c",
];

const ASSEMBLER: [&str; 18] = [
    "adler32_avx2_4",
    "adler32_sse",
    "encode_df_04",
    "encode_df_06",
    "igzip_body",
    "igzip_deflate_hash",
    "igzip_finish",
    "igzip_gen_icf_map_lh1_04",
    "igzip_gen_icf_map_lh1_06",
    "igzip_icf_body_h1_gr_bt",
    "igzip_icf_finish",
    "igzip_multibinary",
    "igzip_set_long_icf_fg_04",
    "igzip_set_long_icf_fg_06",
    "igzip_update_histogram_01",
    "igzip_update_histogram_04",
    "proc_heap",
    "rfc1951_lookup",
];

/// The assembler knows AVX-512; whether the processor does is asked at run time.
const DEFINES: [(&str, &str); 2] = [("AS_FEATURE_LEVEL", "10"), ("HAVE_AS_KNOWS_AVX512", "1")];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/deflate.c");
    println!("cargo:rerun-if-env-changed=PATH");
    println!("cargo:rustc-check-cfg=cfg(built)");
    let target = (env::var("CARGO_CFG_TARGET_ARCH")?, env::var("CARGO_CFG_TARGET_OS")?);
    if target != ("x86_64".into(), "linux".into()) {
        return Ok(());
    }
    if !Command::new("nasm").arg("-v").output().is_ok_and(|run| run.status.success()) {
        // Look again when something is installed.
        for folder in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
            if folder.is_dir() {
                println!("cargo:rerun-if-changed={}", folder.display());
            }
        }
        return Ok(());
    }
    match sources().and_then(|sources| build(&sources)) {
        Ok(()) => println!("cargo:rustc-cfg=built"),
        // Something else encodes instead.
        Err(error) => println!("cargo:warning=ISA-L is left out: {error}"),
    }
    Ok(())
}

/// Where cargo has put ISA-L's sources.
fn sources() -> Result<PathBuf, Box<dyn Error>> {
    let run = Command::new(env::var("CARGO")?)
        .args(["metadata", "--format-version=1", "--offline", "--locked", "--filter-platform"])
        .arg(env::var("TARGET")?)
        .output()?;
    let known = String::from_utf8(run.stdout)?;
    let quoted = known.split('"').find(|text| {
        text.ends_with("Cargo.toml")
            && text.rsplit(['/', '\\']).nth(1).is_some_and(|folder| folder.starts_with("isal-sys"))
    });
    let manifest = quoted.ok_or_else(|| {
        format!("cargo does not tell where isal-sys is: {}", String::from_utf8_lossy(&run.stderr))
    })?;
    Ok(Path::new(manifest).with_file_name("isa-l"))
}

fn build(sources: &Path) -> Result<(), Box<dyn Error>> {
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let folders = [sources.join("include"), sources.join("igzip")];
    let mut library = cc::Build::new();
    library.includes(&folders).warnings(false).file("src/deflate.c");
    library.files(C.iter().map(|file| sources.join(file)));
    for (name, value) in DEFINES {
        library.define(name, value);
    }
    for name in ASSEMBLER {
        let object = out.join(name).with_extension("o");
        let mut nasm = Command::new("nasm");
        nasm.args(["-f", "elf64"]);
        for folder in &folders {
            // nasm joins folder and file as they are.
            nasm.arg(format!("-I{}/", folder.display()));
        }
        for (name, value) in DEFINES {
            nasm.arg(format!("-D{name}={value}"));
        }
        let file = sources.join("igzip").join(name).with_extension("asm");
        if !nasm.arg(file).arg("-o").arg(&object).status()?.success() {
            return Err(format!("nasm could not assemble {name}.asm of ISA-L").into());
        }
        library.object(object);
    }
    library.try_compile("chunkwise_isal")?;
    Ok(())
}
