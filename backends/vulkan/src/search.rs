//! The places where the Vulkan loader searches for drivers, for messages.

/// The loader's file name.
#[cfg(windows)]
pub(crate) const LOADER: &str = "vulkan-1.dll";
/// The loader's file name.
#[cfg(target_vendor = "apple")]
pub(crate) const LOADER: &str = "libvulkan.dylib";
/// The loader's file name.
#[cfg(not(any(windows, target_vendor = "apple")))]
pub(crate) const LOADER: &str = "libvulkan.so.1";

/// Returns one line that says where the loader searched in this environment.
///
/// *Specified*: the Vulkan loader's `LoaderDriverInterface.md`, "Driver Discovery".
pub(crate) fn searched() -> String {
    searched_with(|name| std::env::var(name).ok())
}

fn searched_with(variable: impl Fn(&str) -> Option<String>) -> String {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    for name in ["VK_DRIVER_FILES", "VK_ICD_FILENAMES"] {
        if let Some(value) = set(name) {
            return format!("{name} is set, and only {value} was searched");
        }
    }
    if cfg!(windows) {
        return "searched HKEY_LOCAL_MACHINE\\SOFTWARE\\Khronos\\Vulkan\\Drivers and the display adapters' keys"
            .to_owned();
    }
    let home = set("HOME");
    let base = |name: &str, under_home: &str| {
        set(name).or_else(|| home.as_ref().map(|home| format!("{home}/{under_home}"))).into_iter().collect::<Vec<_>>()
    };
    let list = |name: &str, otherwise: &str| {
        set(name).unwrap_or_else(|| otherwise.to_owned()).split(':').map(str::to_owned).collect::<Vec<_>>()
    };
    let mut folders = base("XDG_CONFIG_HOME", ".config");
    folders.extend(list("XDG_CONFIG_DIRS", "/etc/xdg"));
    folders.push("/etc".to_owned());
    folders.extend(base("XDG_DATA_HOME", ".local/share"));
    folders.extend(list("XDG_DATA_DIRS", "/usr/local/share:/usr/share"));
    let mut places: Vec<String> = folders.iter().map(|folder| format!("{folder}/vulkan/icd.d")).collect();
    places.extend(set("VK_ADD_DRIVER_FILES"));
    format!("searched {}", places.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_driver_files_replaces_every_folder() {
        let text = searched_with(|name| (name == "VK_DRIVER_FILES").then(|| "/x/lvp.json".to_owned()));
        assert_eq!(text, "VK_DRIVER_FILES is set, and only /x/lvp.json was searched");
    }

    #[cfg(unix)]
    #[test]
    fn the_folders_follow_the_environment() {
        let text = searched_with(|name| match name {
            "HOME" => Some("/home/user".to_owned()),
            "XDG_DATA_DIRS" => Some("/opt/share:/usr/share".to_owned()),
            _ => None,
        });
        assert_eq!(
            text,
            "searched /home/user/.config/vulkan/icd.d, /etc/xdg/vulkan/icd.d, /etc/vulkan/icd.d, \
             /home/user/.local/share/vulkan/icd.d, /opt/share/vulkan/icd.d, /usr/share/vulkan/icd.d"
        );
    }
}
