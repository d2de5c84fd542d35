//! Buffers that the host and the device share.

use ash::vk;
use mxprobe_api::Error;

use crate::failure::called;

/// A host-visible buffer, mapped for its whole lifetime.
pub(super) struct Buffer {
    pub(super) handle: vk::Buffer,
    pub(super) memory: vk::DeviceMemory,
    mapped: *mut u8,
    pub(super) bytes: u64,
}

// SAFETY: the mapping belongs only to this buffer and is accessed only through `&mut Session`.
unsafe impl Send for Buffer {}

impl Buffer {
    pub(super) const NONE: Self =
        Self { handle: vk::Buffer::null(), memory: vk::DeviceMemory::null(), mapped: std::ptr::null_mut(), bytes: 0 };

    /// The first `len` bytes of the mapping. The device must not be using the buffer.
    pub(super) fn slice(&mut self, len: usize) -> &mut [u8] {
        assert!(len as u64 <= self.bytes, "{len} bytes of a buffer of {}", self.bytes);
        if len == 0 {
            return &mut [];
        }
        // SAFETY: `mapped` points to `bytes` mapped bytes, host-coherent, that nothing else refers to; the device is
        // idle: every submission is waited for before `&mut self` can be obtained again, or else the session is dead.
        unsafe { std::slice::from_raw_parts_mut(self.mapped, len) }
    }
}

/// Allocates, binds and maps a buffer of `bytes` bytes, preferably in host-cached memory if it is read back.
///
/// # Errors
/// [`Error::is_unsupported`] if no memory type fits; otherwise whatever the driver reports.
pub(super) fn allocate(
    device: &ash::Device,
    types: &vk::PhysicalDeviceMemoryProperties,
    bytes: u64,
    read_back: bool,
) -> Result<Buffer, Error> {
    let info = vk::BufferCreateInfo::default().size(bytes).usage(vk::BufferUsageFlags::STORAGE_BUFFER);
    // SAFETY: `info` is complete; see the calls below for the rest.
    let handle = called("vkCreateBuffer", unsafe { device.create_buffer(&info, None) })?;
    // SAFETY: the handle was just created.
    let needs = unsafe { device.get_buffer_memory_requirements(handle) };
    let attempt = || {
        let ty = memory_type(types, needs.memory_type_bits, read_back).ok_or_else(|| {
            Error::unsupported("no memory of the device is both host-visible and host-coherent".to_owned())
        })?;
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size).memory_type_index(ty);
        // SAFETY: the type is one of the device's and one that the buffer supports.
        called("vkAllocateMemory", unsafe { device.allocate_memory(&info, None) })
    };
    let memory = attempt().inspect_err(|_| {
        // SAFETY: the buffer was never used.
        unsafe { device.destroy_buffer(handle, None) };
    })?;
    // SAFETY: the memory is large enough, of a type that the buffer supports, host-visible and not mapped; offset 0
    // satisfies any alignment.
    let mapped = unsafe {
        device
            .bind_buffer_memory(handle, memory, 0)
            .and_then(|()| device.map_memory(memory, 0, vk::WHOLE_SIZE, vk::MemoryMapFlags::empty()))
    };
    let mapped = called("vkMapMemory", mapped).inspect_err(|_| {
        // SAFETY: neither was ever used by the device.
        unsafe {
            device.destroy_buffer(handle, None);
            device.free_memory(memory, None);
        }
    })?;
    Ok(Buffer { handle, memory, mapped: mapped.cast(), bytes })
}

/// Selects the memory type of a buffer: always host-visible and coherent, and preferably cached if it is read back.
fn memory_type(memory: &vk::PhysicalDeviceMemoryProperties, allowed: u32, read_back: bool) -> Option<u32> {
    let needed = vk::MemoryPropertyFlags::HOST_VISIBLE | vk::MemoryPropertyFlags::HOST_COHERENT;
    let types = memory.memory_types_as_slice();
    let fits = |(at, ty): &(u32, &vk::MemoryType)| allowed >> at & 1 == 1 && ty.property_flags.contains(needed);
    let cached = |(_, ty): &(u32, &vk::MemoryType)| ty.property_flags.contains(vk::MemoryPropertyFlags::HOST_CACHED);
    let all = || (0..).zip(types).filter(fits);
    let preferred = all().find(|candidate| cached(candidate) == read_back);
    preferred.or_else(|| all().next()).map(|(at, _)| at)
}
