//! The Vulkan loader, an instance, and the validation layers if requested.

use std::ffi::{CStr, c_void};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use ash::{ext, khr, vk};
use mxprobe_api::{Error, Refusal};

use crate::{failure::failure, search};

const VALIDATION_LAYER: &CStr = c"VK_LAYER_KHRONOS_validation";

/// The messages of the validation layers, as text.
#[derive(Debug, Default)]
pub(crate) struct Messages(Mutex<Vec<String>>);

impl Messages {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn push(&self, message: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(message);
    }
}

/// A Vulkan instance. It outlives every device created from it, because each of them holds a reference to it.
pub(crate) struct Instance {
    pub(crate) handle: ash::Instance,
    messenger: Option<(ext::debug_utils::Instance, vk::DebugUtilsMessengerEXT)>,
    /// Held because the messenger points to them.
    _messages: Arc<Messages>,
    /// The library that contains the functions.
    pub(crate) entry: ash::Entry,
    /// The version of Vulkan that the loader supports.
    pub(crate) version: u32,
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: the messenger was created from this instance, nothing uses either any more (devices hold an `Arc` of
        // this), and no allocator was given (VUID-vkDestroyInstance-instance-00629).
        unsafe {
            if let Some((debug, messenger)) = self.messenger.take() {
                debug.destroy_debug_utils_messenger(messenger, None);
            }
            self.handle.destroy_instance(None);
        }
    }
}

impl Instance {
    /// Opens the loader and creates an instance, with the validation layers if `validation` is set and they are
    /// installed.
    ///
    /// Validation layers that were requested but are missing are added to `refusals`.
    pub(crate) fn new(
        loader: &Path,
        validation: bool,
        messages: &Arc<Messages>,
        refusals: &mut Vec<Refusal>,
    ) -> Result<Arc<Self>, Refusal> {
        // SAFETY: the library is the Vulkan loader; loading it runs its initialisers, as for any program that links it.
        let entry = unsafe { ash::Entry::load_from(loader) }.map_err(|error| Refusal {
            what: "Vulkan loader".to_owned(),
            reason: Error::missing_driver(format!("not found: {error}")),
            help: Some(format!(
                "the library is {}; install the package that holds it (libvulkan1, vulkan-loader or vulkan-icd-loader)",
                loader.display()
            )),
        })?;
        let refusal = |reason: Error, help: Option<String>| Refusal { what: "Vulkan".to_owned(), reason, help };
        // SAFETY: the function was loaded by ash and takes no input.
        let version = unsafe { entry.try_enumerate_instance_version() }
            .map_err(|result| refusal(failure("vkEnumerateInstanceVersion", result), None))?
            .unwrap_or(vk::API_VERSION_1_0);
        if version < vk::API_VERSION_1_3 {
            let reason = format!("the Vulkan loader offers version {}, below 1.3", version_text(version));
            return Err(refusal(Error::unsupported(reason), Some("install a newer Vulkan loader".to_owned())));
        }

        // SAFETY: as above.
        let extensions = unsafe { entry.enumerate_instance_extension_properties(None) }.unwrap_or_default();
        let has = |name: &CStr| extensions.iter().any(|found| found.extension_name_as_c_str() == Ok(name));
        let mut enabled = Vec::new();
        let mut flags = vk::InstanceCreateFlags::empty();
        if has(khr::portability_enumeration::NAME) {
            enabled.push(khr::portability_enumeration::NAME.as_ptr());
            flags |= vk::InstanceCreateFlags::ENUMERATE_PORTABILITY_KHR;
        }
        let mut layers = Vec::new();
        if validation {
            // SAFETY: as above.
            let found = unsafe { entry.enumerate_instance_layer_properties() }.unwrap_or_default();
            if found.iter().any(|layer| layer.layer_name_as_c_str() == Ok(VALIDATION_LAYER)) {
                layers.push(VALIDATION_LAYER.as_ptr());
                enabled.push(ext::debug_utils::NAME.as_ptr());
            } else {
                refusals.push(Refusal {
                    what: "VK_LAYER_KHRONOS_validation".to_owned(),
                    reason: Error::missing_driver("the Vulkan validation layers are not installed"),
                    help: Some(
                        "install vulkan-validationlayers, or set VK_LAYER_PATH to the folder of its json file"
                            .to_owned(),
                    ),
                });
            }
        }
        let wants_messages = !layers.is_empty();
        let application = vk::ApplicationInfo::default().application_name(c"mxprobe").api_version(vk::API_VERSION_1_3);
        let mut on_creation = messenger_info(messages);
        let mut info = vk::InstanceCreateInfo::default()
            .flags(flags)
            .application_info(&application)
            .enabled_extension_names(&enabled)
            .enabled_layer_names(&layers);
        if wants_messages {
            info = info.push_next(&mut on_creation);
        }
        // SAFETY: every pointer in `info` lives until the call returns; layers and extensions were listed.
        let handle = unsafe { entry.create_instance(&info, None) }.map_err(|result| match result {
            vk::Result::ERROR_INCOMPATIBLE_DRIVER => refusal(
                Error::missing_driver(format!("no Vulkan driver (ICD) was found; {}", search::searched())),
                Some(
                    "install the Vulkan driver of the GPU; its json file has to lie in one of these places".to_owned(),
                ),
            ),
            other => refusal(failure("vkCreateInstance", other), None),
        })?;
        let mut instance = Self { handle, messenger: None, _messages: Arc::clone(messages), entry, version };
        if wants_messages {
            let debug = ext::debug_utils::Instance::new(&instance.entry, &instance.handle);
            // SAFETY: VK_EXT_debug_utils is enabled; the user data lives as long as the instance, which holds it.
            let messenger = unsafe { debug.create_debug_utils_messenger(&messenger_info(messages), None) }
                .map_err(|result| refusal(failure("vkCreateDebugUtilsMessengerEXT", result), None))?;
            instance.messenger = Some((debug, messenger));
        }
        Ok(Arc::new(instance))
    }
}

fn messenger_info(messages: &Arc<Messages>) -> vk::DebugUtilsMessengerCreateInfoEXT<'static> {
    vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::WARNING | vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION)
        .pfn_user_callback(Some(on_message))
        .user_data(Arc::as_ptr(messages).cast_mut().cast())
}

unsafe extern "system" fn on_message(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    user: *mut c_void,
) -> vk::Bool32 {
    // SAFETY: `user` is the `Messages` that the instance holds; the layer passes a structure that is valid during the
    // call, whose message is a null-terminated string (VUID-VkDebugUtilsMessengerCallbackDataEXT-pMessage-parameter).
    let (messages, text) = unsafe {
        let text = (*data).p_message;
        let text = if text.is_null() { String::new() } else { CStr::from_ptr(text).to_string_lossy().into_owned() };
        (&*user.cast::<Messages>(), text)
    };
    messages.push(text);
    vk::FALSE // required: VUID-PFN_vkDebugUtilsMessengerCallbackEXT-None-04769
}

/// Formats a version: `1.4.354`.
pub(crate) fn version_text(version: u32) -> String {
    let (major, minor, patch) =
        (vk::api_version_major(version), vk::api_version_minor(version), vk::api_version_patch(version));
    format!("{major}.{minor}.{patch}")
}
