//! Translation of the results of Vulkan calls to typed errors.

use ash::vk;
use mxprobe_api::Error;

/// The error of a call that returned `result`.
pub(crate) fn failure(call: &str, result: vk::Result) -> Error {
    let text = format!("{call} returned {result:?}");
    match result {
        vk::Result::ERROR_DEVICE_LOST => Error::device_lost(text),
        vk::Result::ERROR_OUT_OF_HOST_MEMORY => Error::out_of_memory(format!("{text}: the host has no memory left")),
        vk::Result::ERROR_OUT_OF_DEVICE_MEMORY => {
            Error::out_of_memory(format!("{text}: the device has no memory left"))
        }
        vk::Result::ERROR_OUT_OF_POOL_MEMORY
        | vk::Result::ERROR_FRAGMENTED_POOL
        | vk::Result::ERROR_FRAGMENTATION
        | vk::Result::ERROR_MEMORY_MAP_FAILED => Error::out_of_memory(text),
        vk::Result::TIMEOUT => Error::timed_out(text),
        vk::Result::ERROR_FEATURE_NOT_PRESENT
        | vk::Result::ERROR_EXTENSION_NOT_PRESENT
        | vk::Result::ERROR_FORMAT_NOT_SUPPORTED => Error::unsupported(text),
        vk::Result::ERROR_INCOMPATIBLE_DRIVER => Error::missing_driver(text),
        _ => Error::driver(text),
    }
}

/// Converts the result of a call; the error contains its name.
pub(crate) fn called<T>(call: &str, result: Result<T, vk::Result>) -> Result<T, Error> {
    result.map_err(|result| failure(call, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_failure_has_its_predicate_and_names_the_call() {
        type Predicate = fn(&Error) -> bool;
        let table: [(vk::Result, Predicate); 6] = [
            (vk::Result::ERROR_DEVICE_LOST, Error::is_device_lost),
            (vk::Result::ERROR_OUT_OF_HOST_MEMORY, Error::is_out_of_memory),
            (vk::Result::ERROR_OUT_OF_DEVICE_MEMORY, Error::is_out_of_memory),
            (vk::Result::TIMEOUT, Error::is_timed_out),
            (vk::Result::ERROR_FEATURE_NOT_PRESENT, Error::is_unsupported),
            (vk::Result::ERROR_INCOMPATIBLE_DRIVER, Error::is_missing_driver),
        ];
        for (result, is_kind) in table {
            let error = failure("vkDoIt", result);
            assert!(
                is_kind(&error) && error.to_string().starts_with(&format!("vkDoIt returned {result:?}")),
                "{error}"
            );
        }
    }
}
