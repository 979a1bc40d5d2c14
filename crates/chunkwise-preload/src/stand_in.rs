//! In the place of which functions of libhdf5 does this library stand, and how is their caller known?
//!
//! Each hands its arguments on as they are, and with them the address to which it will return,
//! by which [`callee::of`] knows the caller.  What libhdf5 calls back may throw (C++): these frames
//! say how they are unwound, as libhdf5's do.

use std::ffi::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

use chunkwise_libhdf5::binding::{herr_t, hid_t, hsize_t};

use crate::call::Call;
use crate::callee::{self, Callee};
use crate::trace::Answered;
use crate::traced::Operation;
use crate::{conversions, datasets, environment, reading, selected, spaces, trace, writing};

/// What a function of HDF5 returns on failure, where there is no function to pass a call on to.
const FAILED: c_int = -1;

/// Export `$name`, which calls `$inner` with its arguments in registers (up to six), and the
/// return address as the seventh.  A function `of seven` has its own seventh argument on the stack,
/// and the return address is the eighth.
macro_rules! stand_in {
    ($name:ident => $inner:path) => {
        // The stack is aligned with the seventh argument on it.
        stand_in!($name => $inner, "x6", "8", "push qword ptr [rsp]", ".cfi_adjust_cfa_offset 8");
    };
    ($name:ident => $inner:path, of seven) => {
        stand_in!(
            $name => $inner, "x7", "24",
            "sub rsp, 8",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 8]",
            ".cfi_adjust_cfa_offset 8",
            "push qword ptr [rsp + 24]",
            ".cfi_adjust_cfa_offset 8"
        );
    };
    ($name:ident => $inner:path, $register:literal, $pushed:literal, $($push:literal),+) => {
        /// In the place of libhdf5's.
        ///
        /// # Safety
        /// As that function.
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        #[allow(non_snake_case)]
        pub unsafe extern "C-unwind" fn $name() {
            #[cfg(target_arch = "x86_64")]
            std::arch::naked_asm!(
                ".cfi_startproc",
                $($push,)+
                "call {inner}",
                concat!("add rsp, ", $pushed),
                concat!(".cfi_adjust_cfa_offset -", $pushed),
                "ret",
                ".cfi_endproc",
                inner = sym $inner,
            );
            #[cfg(target_arch = "aarch64")]
            std::arch::naked_asm!(
                concat!("mov ", $register, ", x30"),
                "b {inner}",
                inner = sym $inner,
            );
        }
    };
}

stand_in!(H5Dread => read);
stand_in!(H5Dwrite => write);
stand_in!(H5Dread_multi => read_multi, of seven);
stand_in!(H5Dwrite_multi => write_multi, of seven);
stand_in!(H5Dclose => close_dataset);
stand_in!(H5Oclose => close_object);
stand_in!(H5Idec_ref => dec_ref);
stand_in!(H5Fclose => close_file);
stand_in!(H5Drefresh => refresh);
stand_in!(H5Orefresh => refresh_object);
stand_in!(H5close => close_library);
stand_in!(H5Dset_extent => set_extent);
stand_in!(H5Dextend => extend);
stand_in!(H5Soffset_simple => offset_simple);
stand_in!(H5Sselect_elements => select_elements);
stand_in!(H5Dget_space => get_space);
stand_in!(H5Sselect_hyperslab => select_hyperslab);
stand_in!(H5Sselect_all => select_all);
stand_in!(H5Sselect_none => select_none);
stand_in!(H5Sselect_copy => select_copy);
stand_in!(H5Sselect_adjust => select_adjust);
stand_in!(H5Smodify_select => modify_select);
stand_in!(H5Sset_extent_simple => set_extent_simple);
stand_in!(H5Sset_extent_none => set_extent_none);
stand_in!(H5Sextent_copy => extent_copy);
stand_in!(H5Tregister => register);
stand_in!(H5Tunregister => unregister);

unsafe extern "C-unwind" fn read(
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
    let pass_on = || {
        let Some(read) = callee.read else { return FAILED };
        // SAFETY: the program's own call, of this library.
        unsafe { read(dataset, memory_type, memory_space, file_space, transfer, buffer) }
    };
    // SAFETY: as above.
    let carry_out = || match unsafe { reading::answer(callee, &call) } {
        true => (0, Answered::Here),
        false => (pass_on(), Answered::ByLibhdf5),
    };
    if environment::trace().is_none() {
        return carry_out().0;
    }
    // SAFETY: as above.
    unsafe {
        match environment::observe_only() {
            true => {
                trace::timed(Operation::Read, callee, &call, || (pass_on(), Answered::ByLibhdf5))
            }
            false => trace::timed(Operation::Read, callee, &call, carry_out),
        }
    }
}

unsafe extern "C-unwind" fn write(
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
    let pass_on = || {
        let Some(write) = callee.write else { return FAILED };
        // SAFETY: the program's own call, of this library.
        unsafe { write(dataset, memory_type, memory_space, file_space, transfer, buffer) }
    };
    // SAFETY: as above.
    let carry_out = || match unsafe { writing::answer(callee, &call) } {
        true => (0, Answered::Here),
        false => (pass_on(), Answered::ByLibhdf5),
    };
    if environment::trace().is_none() {
        return carry_out().0;
    }
    // SAFETY: as above.
    unsafe { trace::timed(Operation::Write, callee, &call, carry_out) }
}

/// What the program says of several datasets; nothing where lists are missing, which libhdf5 refuses.
///
/// # Safety
/// Each list is null or has `count` entries.
unsafe fn calls(
    count: usize,
    lists: [*const hid_t; 4],
    transfer: hid_t,
    buffers: *const *mut c_void,
) -> Vec<Call> {
    if buffers.is_null() || lists.iter().any(|list| list.is_null()) {
        return Vec::new();
    }
    let one = |i| {
        // SAFETY: the caller's contract.
        let ([dataset, memory_type, memory_space, file_space], buffer) =
            unsafe { (lists.map(|list| *list.add(i)), *buffers.add(i)) };
        Call { dataset, memory_type, memory_space, file_space, transfer, buffer }
    };
    (0..count).map(one).collect()
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn read_multi(
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
    let lists = [datasets, memory_types, memory_spaces, file_spaces];
    // SAFETY: the program's own call.
    let mut left = unsafe { calls(count, lists, transfer, buffers) };
    let pass_all_on = || {
        let [datasets, types, memory, file] = lists;
        // SAFETY: as above, passed on as it is.
        unsafe { read_multi(count, datasets, types, memory, file, transfer, buffers) }
    };
    if left.is_empty() {
        return pass_all_on();
    }
    let is_traced = environment::trace().is_some();
    if !(is_traced && environment::observe_only()) {
        left.retain(|call| {
            // SAFETY: the program's own call, of this library.
            let answer = || unsafe { reading::answer(callee, call) };
            // SAFETY: as above.
            !if is_traced { unsafe { trace::tried(callee, call, answer) } } else { answer() }
        });
    }
    if left.is_empty() {
        return 0;
    }
    // What the engine does not read is read by one call, as it would have been.
    let list = |of: fn(&Call) -> hid_t| left.iter().map(of).collect::<Vec<_>>();
    let (datasets, types) = (list(|call| call.dataset), list(|call| call.memory_type));
    let (memory, file) = (list(|call| call.memory_space), list(|call| call.file_space));
    let buffers: Vec<_> = left.iter().map(|call| call.buffer).collect();
    // SAFETY: as above; the lists have an entry for each that is left.
    let pass_on = || unsafe {
        let [datasets, types, memory, file] =
            [&datasets, &types, &memory, &file].map(|list| list.as_ptr());
        read_multi(left.len(), datasets, types, memory, file, transfer, buffers.as_ptr())
    };
    let carry_out = || match is_traced {
        // SAFETY: as above.
        true => unsafe { trace::together(Operation::Read, callee, &left, pass_on) },
        false => pass_on(),
    };
    match callee.bound() {
        Ok(bound) if left.len() < count => {
            // The errors of a call that fails are those of the whole.
            let status = bound.library.locked(|_| carry_out());
            if status < 0 { pass_all_on() } else { status }
        }
        _ => carry_out(),
    }
}

#[allow(clippy::too_many_arguments)]
unsafe extern "C-unwind" fn write_multi(
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
    let Some(write_multi) = callee.write_multi else { return FAILED };
    let lists = [datasets, memory_types, memory_spaces, file_spaces];
    let calls = match environment::is_reporting() {
        // SAFETY: the program's own call.
        true => unsafe { calls(count, lists, transfer, buffers) },
        false => Vec::new(),
    };
    for call in &calls {
        // SAFETY: as above.
        unsafe { writing::count_among_others(callee, call) };
    }
    // Whole, as libhdf5 writes nothing where it refuses one of them.
    let pass_on = || {
        let [datasets, types, memory, file] = lists;
        // SAFETY: as above, passed on as it is.
        unsafe { write_multi(count, datasets, types, memory, file, transfer, buffers) }
    };
    if environment::trace().is_none() {
        return pass_on();
    }
    // SAFETY: as above.
    unsafe { trace::together(Operation::Write, callee, &calls, pass_on) }
}

/// What closes or changes one object: what is known of it is forgotten first, or after, with what
/// the call gave.
macro_rules! ends {
    ($name:ident, $field:ident, $before:expr, $after:expr) => {
        unsafe extern "C-unwind" fn $name(
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
            let after: fn(&Callee, hid_t, c_int) = $after;
            before(callee, id);
            // SAFETY: the program's own call, passed on as it is.
            let status = unsafe { own(id) };
            after(callee, id, status);
            status
        }
    };
}

ends!(close_dataset, close_dataset, datasets::forget, |_, _, _| {});
ends!(close_object, close_object, datasets::forget, |_, _, _| {});
// A file that is closed strongly takes its datasets with it.
ends!(close_file, close_file, |_, _| {}, |callee, _, status| {
    datasets::forget_closed(callee, status);
});
ends!(dec_ref, dec_ref, datasets::forget, datasets::forget_closed_by_reference);
// Other handles of a dataset are refreshed with it.
ends!(refresh, refresh, |callee, _| datasets::forget_all(callee), |_, _, _| {});
ends!(refresh_object, refresh_object, |callee, _| datasets::forget_all(callee), |_, _, _| {});

unsafe extern "C-unwind" fn close_library(
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

/// What changes the extents of a dataset.
macro_rules! resizes {
    ($name:ident) => {
        unsafe extern "C-unwind" fn $name(
            dataset: hid_t,
            extents: *const hsize_t,
            _: usize,
            _: usize,
            _: usize,
            _: usize,
            caller: usize,
        ) -> herr_t {
            let Some(callee) = callee::of(caller) else { return FAILED };
            let Some(own) = callee.$name else { return FAILED };
            trace::RESIZED.store(true, Ordering::Relaxed);
            // SAFETY: the program's own call, passed on as it is.
            unsafe { own(dataset, extents) }
        }
    };
}

resizes!(set_extent);
resizes!(extend);

unsafe extern "C-unwind" fn offset_simple(
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

unsafe extern "C-unwind" fn select_elements(
    space: hid_t,
    how: c_int,
    count: usize,
    points: *const hsize_t,
    _: usize,
    _: usize,
    caller: usize,
) -> herr_t {
    let Some(callee) = callee::of(caller) else { return FAILED };
    let Some(own) = callee.select_elements else { return FAILED };
    spaces::PICKED.store(true, Ordering::Relaxed);
    selected::change(space);
    // SAFETY: the program's own call, passed on as it is.
    unsafe { own(space, how, count, points) }
}

unsafe extern "C-unwind" fn get_space(
    dataset: hid_t,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    _: usize,
    caller: usize,
) -> hid_t {
    const NO_SPACE: hid_t = -1;
    let Some(callee) = callee::of(caller) else { return NO_SPACE };
    let Some(own) = callee.get_space else { return NO_SPACE };
    // SAFETY: the program's own call, passed on as it is.
    let space = unsafe { own(dataset) };
    // Many programs ask for another dataspace before each read.
    if space >= 0
        && environment::trace().is_some()
        && let Some(rank) = datasets::rank(callee, dataset)
    {
        selected::learn(callee, space, rank);
    }
    space
}

unsafe extern "C-unwind" fn select_hyperslab(
    space: hid_t,
    how: c_int,
    start: *const hsize_t,
    stride: *const hsize_t,
    count: *const hsize_t,
    block: *const hsize_t,
    caller: usize,
) -> herr_t {
    const SET: c_int = 0;
    let Some(callee) = callee::of(caller) else { return FAILED };
    let Some(own) = callee.select_hyperslab else { return FAILED };
    // SAFETY: the program's own call, passed on as it is.
    let status = unsafe { own(space, how, start, stride, count, block) };
    if environment::trace().is_some() {
        match status >= 0 && how == SET {
            // SAFETY: as above.
            true => unsafe { selected::set(callee, space, [start, stride, count, block]) },
            false => selected::change(space),
        }
    }
    status
}

/// What changes a dataspace in another way.
macro_rules! alters {
    ($name:ident) => {
        unsafe extern "C-unwind" fn $name(
            space: hid_t,
            second: usize,
            third: usize,
            fourth: usize,
            _: usize,
            _: usize,
            caller: usize,
        ) -> herr_t {
            let Some(callee) = callee::of(caller) else { return FAILED };
            let Some(own) = callee.$name else { return FAILED };
            selected::change(space);
            // SAFETY: the program's own call, passed on with all arguments that it may have.
            unsafe { own(space, second, third, fourth) }
        }
    };
}

alters!(select_all);
alters!(select_none);
alters!(select_copy);
alters!(select_adjust);
alters!(modify_select);
alters!(set_extent_simple);
alters!(set_extent_none);
alters!(extent_copy);

/// What changes how types are converted.
macro_rules! changes {
    ($name:ident) => {
        unsafe extern "C-unwind" fn $name(
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
