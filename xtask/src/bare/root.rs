//! Bare Debian systems in folders: made by mmdebstrap once, unpacked for each use, entered by `chroot`.
//!
//! A system has the packages of the variant `minbase` alone: no compiler, no Python, no `xz`. The sources of packages are
//! those of this machine, and so are proxies and certificates.

use crate::process::{self, Failure, Outcome};
use crate::setup::{self, Need};
use crate::workspace;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Packages for the bare system.
const NEEDS: &[Need] = &[
    Need {
        package: "mmdebstrap",
        purpose: "a bare Debian system",
        present: || process::on_path("mmdebstrap"),
    },
    Need {
        package: "debian-archive-keyring",
        purpose: "the keys of Debian's packages",
        present: || Path::new("/usr/share/keyrings/debian-archive-keyring.gpg").is_file(),
    },
];

/// Files and folders of this machine that a system needs for downloads.
const HOST_FILES: &[&str] = &["/etc/hosts", "/etc/resolv.conf", "/etc/pip.conf"];

/// Certificates of this machine, and their place in a system: the package of Debian's certificates writes to the first.
const CERTIFICATES: [&str; 2] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/srv/certificates.crt",
];

/// Variables of downloads that a system gets.
const VARIABLES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "pip_extra_index_url",
    "pip_index_url",
    "pip_trusted_host",
];

/// The most time for one script.
const LIMIT: Duration = Duration::from_secs(1200);

/// State of package managers, which no removal of a package restores.
const STATE: &[&str] = &[
    "/etc/ld.so.cache",
    "/var/cache/apt/",
    "/var/cache/debconf/",
    "/var/cache/ldconfig/",
    "/var/lib/apt/",
    "/var/lib/dpkg/",
    "/var/log/",
];

/// A bare system in a folder; removed at the end.
pub struct Root {
    folder: PathBuf,
}

impl Drop for Root {
    fn drop(&mut self) {
        // The next use removes the folder, and reports failures.
        let _ = workspace::remove(&self.folder);
    }
}

impl Root {
    /// Unpacks a system of the release of this machine.
    ///
    /// # Errors
    /// Fails without the rights of root, or if a package is not available.
    pub fn unpack() -> Outcome<Root> {
        let user = process::capture(Command::new("id").arg("-u"))?;
        if user.trim() != "0" {
            return Err(Failure::new(
                "a bare system needs `chroot`: run the command as root",
            ));
        }
        let archive = archive()?;
        let folder = workspace::target().join("bare/root");
        workspace::remove(&folder)?;
        std::fs::create_dir_all(&folder)
            .map_err(|e| Failure::new(format!("cannot make {}: {e}", folder.display())))?;
        let root = Root { folder };
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(archive).arg("-C").arg(&root.folder);
        process::show(&mut tar)?;
        for file in HOST_FILES.iter().map(Path::new).filter(|f| f.is_file()) {
            root.put(file, file)?;
        }
        let [certificates, place] = CERTIFICATES.map(Path::new);
        if certificates.is_file() {
            root.put(certificates, place)?;
        }
        root.write("/etc/apt/apt.conf.d/90downloads", &downloads()?)?;
        Ok(root)
    }

    /// Copies a file of this machine to a path of the system.
    ///
    /// # Errors
    /// Fails if the file cannot be copied.
    pub fn put(&self, file: &Path, place: &Path) -> Outcome<()> {
        let to = self.inside(place);
        let copied = make_parent(&to).and_then(|()| std::fs::copy(file, &to).map(drop));
        copied.map_err(|e| Failure::new(format!("cannot write {}: {e}", to.display())))
    }

    /// Writes a file of the system.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub fn write(&self, place: &str, text: &str) -> Outcome<()> {
        let to = self.inside(Path::new(place));
        let written = make_parent(&to).and_then(|()| std::fs::write(&to, text));
        written.map_err(|e| Failure::new(format!("cannot write {}: {e}", to.display())))
    }

    /// Runs a script of the shell in the system, as root. Returns the output and the seconds of processor time.
    ///
    /// # Errors
    /// Fails if the script does, or takes longer than [`LIMIT`]; the failure holds the output.
    pub fn run(&self, script: &str) -> Outcome<(String, f64)> {
        // The mount is visible to the script alone, and ends with the script.
        const ENTER: &str = "mount -t proc proc \"$0/proc\"; exec chroot \"$0\" \
            /usr/bin/env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child"]);
        command.args(["sh", "-ec", ENTER]).arg(&self.folder);
        for (name, value) in std::env::vars() {
            let name = name.as_str();
            if VARIABLES.contains(&name.to_lowercase().as_str()) {
                command.arg(format!("{name}={value}"));
            }
        }
        let [certificates, place] = CERTIFICATES;
        if Path::new(certificates).is_file() {
            command.arg(format!("PIP_CERT={place}"));
        }
        command.args(["sh", "-ec", &format!("exec 2>&1\n{script}")]);
        let (done, seconds) = process::processor_time(&mut command, LIMIT)?;
        match done.succeeded() {
            true => Ok((done.stdout, seconds)),
            false => Err(Failure::new(format!(
                "`{script}`: {}\n{}{}",
                done.ending(),
                done.stdout,
                done.stderr
            ))),
        }
    }

    /// Returns all files and folders of the system, without the state of package managers.
    ///
    /// # Errors
    /// Fails if a folder is not readable.
    pub fn files(&self) -> Outcome<BTreeSet<String>> {
        let mut find = Command::new("find");
        find.arg(&self.folder)
            .args(["-mindepth", "1", "-printf", "/%P\\n"]);
        let text = process::capture(&mut find)?;
        let keeps = |path: &&str| !STATE.iter().any(|start| path.starts_with(start));
        Ok(text.lines().filter(keeps).map(str::to_owned).collect())
    }

    /// Returns a path of the system as a path of this machine.
    fn inside(&self, place: &Path) -> PathBuf {
        self.folder.join(place.strip_prefix("/").unwrap_or(place))
    }
}

fn make_parent(file: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(file.parent().unwrap_or(file))
}

/// Returns the archive of the bare system; mmdebstrap makes it at the first use.
fn archive() -> Outcome<PathBuf> {
    let about = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let Some(release) = codename(&about) else {
        return Err(Failure::new("this machine has no release of Debian"));
    };
    let archive = workspace::target().join(format!("bare/{release}.tar"));
    if archive.is_file() {
        return Ok(archive);
    }
    setup::install(NEEDS)?;
    println!("bare: making a system of Debian {release}");
    let unfinished = archive.with_extension("unfinished.tar");
    make_parent(&unfinished).map_err(|e| Failure::new(e.to_string()))?;
    let mut make = Command::new("mmdebstrap");
    make.args(["--quiet", "--variant=minbase", "--mode=root"]);
    make.args(["--dpkgopt=force-unsafe-io", release]);
    make.arg(&unfinished);
    let sources = [
        "/etc/apt/sources.list",
        "/etc/apt/sources.list.d/debian.sources",
    ];
    make.args(sources.iter().filter(|file| Path::new(file).is_file()));
    process::show(&mut make)?;
    std::fs::rename(&unfinished, &archive)
        .map_err(|e| Failure::new(format!("cannot write {}: {e}", archive.display())))?;
    Ok(archive)
}

/// Returns the name of a release of Debian.
fn codename(os_release: &str) -> Option<&str> {
    let value = |name: &str| {
        let mut lines = os_release.lines();
        lines.find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    };
    value("ID").filter(|id| *id == "debian")?;
    value("VERSION_CODENAME")
}

/// Returns apt's settings of downloads on this machine.
fn downloads() -> Outcome<String> {
    let mut ask = Command::new("apt-config");
    let all = process::capture(ask.args(["dump", "Acquire"]))?;
    // Lists and languages are the system's own.
    let kept = ["Acquire::http", "Acquire::https", "Acquire::Check-"];
    let lines = all
        .lines()
        .filter(|line| kept.iter().any(|k| line.starts_with(k)));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_debian_has_a_codename() {
        let debian = "PRETTY_NAME=\"Debian\"\nID=debian\nVERSION_CODENAME=bookworm\n";
        assert_eq!(codename(debian), Some("bookworm"));
        assert_eq!(codename("ID=other\nVERSION_CODENAME=noble\n"), None);
    }
}
