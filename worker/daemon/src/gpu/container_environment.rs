//! The same variables for a program in a container of Apptainer, which may start it with a clean environment
//! and without the host's directories.

use std::collections::BTreeMap;
use std::path::Path;

/// Apptainer sets each variable with this prefix in the container, without the prefix.
const PREFIX: &str = "APPTAINERENV_";

/// Directories that Apptainer makes visible in the container.
const BIND: &str = "APPTAINER_BIND";

/// The beginnings of the variables that a program needs to use its GPU and to report to Cohabit.
const NEEDED: [&str; 4] = ["COHABIT_", "CUDA_", "TF_FORCE_GPU_", "XLA_"];

/// The variables by which Apptainer passes on those of this rank, and shows it these paths.
pub(crate) fn container_environment(
    environment: &BTreeMap<String, String>,
    paths: &[&Path],
) -> BTreeMap<String, String> {
    let is_needed = |name: &str| NEEDED.iter().any(|beginning| name.starts_with(beginning));
    let needed = environment.iter().filter(|(name, _)| is_needed(name));
    let mut passed: BTreeMap<String, String> =
        needed.map(|(name, value)| (format!("{PREFIX}{name}"), value.clone())).collect();
    // What the user has set comes first and stays.
    let by_user = environment.get(BIND).filter(|bound| !bound.is_empty()).cloned();
    let paths = paths.iter().map(|path| path.to_string_lossy().into_owned());
    passed.insert(BIND.to_owned(), by_user.into_iter().chain(paths).collect::<Vec<_>>().join(","));
    passed.retain(|name, _| name == BIND || !environment.contains_key(name));
    passed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_get_the_prefix_and_paths_are_bound_after_the_users_own() {
        let own = [
            ("CUDA_VISIBLE_DEVICES", "0"),
            ("COHABIT_RANK", "3"),
            ("HOME", "/home/ada"),
            ("APPTAINER_BIND", "/data"),
            ("APPTAINERENV_COHABIT_RANK", "by the user"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let passed = container_environment(&own, &[Path::new("/pipe"), Path::new("/progress")]);
        let expected =
            [("APPTAINERENV_CUDA_VISIBLE_DEVICES", "0"), ("APPTAINER_BIND", "/data,/pipe,/progress")];
        assert_eq!(passed, expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
    }
}
