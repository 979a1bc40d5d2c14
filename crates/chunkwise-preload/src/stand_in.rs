//! In the place of which functions of libhdf5 does this library stand, and how is their caller known?
//!
//! Each hands its arguments on as they are, and with them the address to which it will return,
//! by which [`callee::of`] knows the caller.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use chunkwise_libhdf5::binding::{herr_t, hid_t};

use crate::call::Call;
use crate::callee::{self, Callee};
use crate::counted::Operation;
use crate::trace::Answered;
use crate::{conversions, datasets, reading, spaces, trace, wishes, writing};

/// What a function of HDF5 returns on failure, where there is no function to pass a call on to.
const FAILED: c_int = -1;

/// Export `$name`, which calls `$inner` with its arguments in registers (up to six), and the
/// return address as the seventh.
macro_rules! stand_in {
    ($name:ident => $inner:path) => {
        /// In the place of libhdf5's.
        ///
        /// # Safety
        /// As that function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C" fn $name() {
            #[cfg(target_arch = "x86_64")]
            // The seventh argument lies on the stack, which is aligned with it.
            std::arch::naked_asm!(
                "push qword ptr [rsp]",
                "call {inner}",
                "add rsp, 8",
                "ret",
                inner = sym $inner,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!("mov x6, x30", "b {inner}", inner = sym $inner);
        }
    };
}

stand_in!(H5Dread => read);
stand_in!(H5Dwrite => write);
stand_in!(H5Dclose => close_dataset);
stand_in!(H5Oclose => close_object);
stand_in!(H5Idec_ref => dec_ref);
stand_in!(H5Fclose => close_file);
stand_in!(H5Drefresh => refresh);
stand_in!(H5Orefresh => refresh_object);
stand_in!(H5close => close_library);
stand_in!(H5Soffset_simple => offset_simple);
stand_in!(H5Tregister => register);
stand_in!(H5Tunregister => unregister);

/// In the place of libhdf5's.
///
/// # Safety
/// As that function.
#[unsafe(naked)]
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn H5Dread_multi() {
    #[cfg(target_arch = "x86_64")]
    // Its own seventh argument, and the return address as the eighth.
    std::arch::naked_asm!(
        "sub rsp, 8",
        "push qword ptr [rsp + 8]",
        "push qword ptr [rsp + 24]",
        "call {inner}",
        "add rsp, 24",
        "ret",
        inner = sym read_multi,
    );
    #[cfg(target_arch = "aarch64")]
    std::arch::naked_asm!("mov x7, x30", "b {inner}", inner = sym read_multi);
}

unsafe extern "C" fn read(
    dataset: hid_t,
    memory_type: hid_t,
    memory_space: hid_t,
    file_space: hid_t,
    transfer: hid_t,
    buffer: *mut c_void,
    caller: usize,
) -> herr_t {
    let Some(callee) = callee::of(caller) else { return FAILED };
    let call = Call { dataset, memory_type, memory_space, file_space, transfer, buffer };
    // SAFETY: the program's own call, of this library.
    let carry_out = || unsafe {
        if reading::answer(callee, &call) {
            return (0, Answered::Here);
        }
        let Some(read) = callee.read else { return (FAILED, Answered::ByLibhdf5) };
        let status = read(dataset, memory_type, memory_space, file_space, transfer, buffer);
        (status, Answered::ByLibhdf5)
    };
    if wishes::trace().is_some() {
        // SAFETY: as above.
        return unsafe { trace::timed(Operation::Read, callee, dataset, file_space, carry_out) };
    }
    carry_out().0
}

unsafe extern "C" fn write(
    dataset: hid_t,
    memory_type: hid_t,
    memory_space: hid_t,
    file_space: hid_t,
    transfer: hid_t,
    buffer: *mut c_void,
    caller: usize,
) -> herr_t {
    let Some(callee) = callee::of(caller) else { return FAILED };
    let call = Call { dataset, memory_type, memory_space, file_space, transfer, buffer };
    // SAFETY: the program's own call, of this library.
    let carry_out = || unsafe {
        if writing::answer(callee, &call) {
            return (0, Answered::Here);
        }
        let Some(write) = callee.write else { return (FAILED, Answered::ByLibhdf5) };
        let status = write(dataset, memory_type, memory_space, file_space, transfer, buffer);
        (status, Answered::ByLibhdf5)
    };
    if wishes::trace().is_some() {
        // SAFETY: as above.
        return unsafe { trace::timed(Operation::Write, callee, dataset, file_space, carry_out) };
    }
    carry_out().0
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C" fn read_multi(
    count: usize,
    datasets: *const hid_t,
    memory_types: *const hid_t,
    memory_spaces: *const hid_t,
    file_spaces: *const hid_t,
    transfer: hid_t,
    buffers: *const *mut c_void,
    caller: usize,
) -> herr_t {
    let Some(callee) = callee::of(caller) else { return FAILED };
    let Some(read_multi) = callee.read_multi else { return FAILED };
    // SAFETY: the program's own call, passed on as it is.
    let pass_on = |count, datasets, types, memory, file, buffers| unsafe {
        read_multi(count, datasets, types, memory, file, transfer, buffers)
    };
    let all = [datasets, memory_types, memory_spaces, file_spaces];
    if count < 1 || buffers.is_null() || all.iter().any(|list| list.is_null()) {
        return pass_on(count, datasets, memory_types, memory_spaces, file_spaces, buffers);
    }
    // What the engine does not read is read by one call, as it would have been.
    let mut left: [Vec<hid_t>; 4] = Default::default();
    let mut left_buffers: Vec<*mut c_void> = Vec::new();
    for i in 0..count {
        // SAFETY: each list has `count` entries.
        let ([dataset, memory_type, memory_space, file_space], buffer) =
            unsafe { (all.map(|list| *list.add(i)), *buffers.add(i)) };
        let call = Call { dataset, memory_type, memory_space, file_space, transfer, buffer };
        // SAFETY: as above.
        if !unsafe { reading::answer(callee, &call) } {
            let handles = [dataset, memory_type, memory_space, file_space];
            left.iter_mut().zip(handles).for_each(|(list, handle)| list.push(handle));
            left_buffers.push(buffer);
        }
    }
    if left_buffers.is_empty() {
        return 0;
    }
    let [datasets, types, memory, file] = left.each_ref().map(|list| list.as_ptr());
    pass_on(left_buffers.len(), datasets, types, memory, file, left_buffers.as_ptr())
}

/// What closes or changes one object: what is known of it is forgotten first.
macro_rules! ends {
    ($name:ident, $field:ident, $before:expr, $after:expr) => {
        unsafe extern "C" fn $name(
            id: hid_t,
            _: usize,
            _: usize,
            _: usize,
            _: usize,
            _: usize,
            caller: usize,
        ) -> c_int {
            let Some(callee) = callee::of(caller) else { return FAILED };
            let Some(own) = callee.$field else { return FAILED };
            let before: fn(&Callee, hid_t) = $before;
            let after: fn(&Callee) = $after;
            before(callee, id);
            // SAFETY: the program's own call, passed on as it is.
            let status = unsafe { own(id) };
            after(callee);
            status
        }
    };
}

ends!(close_dataset, close_dataset, datasets::forget, |_| {});
ends!(close_object, close_object, datasets::forget, |_| {});
ends!(dec_ref, dec_ref, datasets::forget, |_| {});
// Other handles of a dataset are refreshed with it.
ends!(refresh, refresh, |callee, _| datasets::forget_all(callee), |_| {});
ends!(refresh_object, refresh_object, |callee, _| datasets::forget_all(callee), |_| {});
// A file that is closed strongly takes its datasets with it.
ends!(close_file, close_file, |_, _| {}, datasets::forget_closed);

unsafe extern "C" fn close_library(
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    caller: usize,
) -> herr_t {
    let Some(callee) = callee::of(caller) else { return FAILED };
    let Some(own) = callee.close_library else { return FAILED };
    // Handles count from the beginning again.
    datasets::forget_all(callee);
    callee.give_up("the program has closed the library");
    // SAFETY: the program's own call, passed on as it is.
    unsafe { own() }
}

unsafe extern "C" fn offset_simple(
    space: hid_t,
    offset: *const i64,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    caller: usize,
) -> herr_t {
    let Some(callee) = callee::of(caller) else { return FAILED };
    let Some(own) = callee.offset_simple else { return FAILED };
    spaces::MOVED.store(true, Ordering::Relaxed);
    // SAFETY: the program's own call, passed on as it is.
    unsafe { own(space, offset) }
}

/// What changes how types are converted.
macro_rules! changes {
    ($name:ident) => {
        unsafe extern "C" fn $name(
            how: c_int,
            name: *const c_char,
            from: hid_t,
            to: hid_t,
            function: *const c_void,
            _: usize,
            caller: usize,
        ) -> herr_t {
            let Some(callee) = callee::of(caller) else { return FAILED };
            let Some(own) = callee.$name else { return FAILED };
            // SAFETY: the program's own call, passed on as it is.
            unsafe {
                let status = own(how, name, from, to, function);
                if status >= 0 {
                    conversions::note_change(callee, from, to);
                }
                status
            }
        }
    };
}

changes!(register);
changes!(unregister);
