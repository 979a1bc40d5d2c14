//! Which functions of libhdf5 does copying a file's tree need beside those of
//! [`Api`](chunkwise_libhdf5::Api)?
//!
//! They are looked up when a copy begins, so that a libhdf5 that lacks one can still read.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use chunkwise_libhdf5::binding::{herr_t, hid_t, hsize_t, htri_t};

/// Called by `H5Literate` and `H5Literate2` for each link.
pub(super) type LinkCallback = unsafe extern "C" fn(
    group: hid_t,
    name: *const c_char,
    info: *const LinkInfo,
    data: *mut c_void,
) -> herr_t;

/// Called by `H5Aiterate2` for each attribute.
pub(super) type AttributeCallback = unsafe extern "C" fn(
    object: hid_t,
    name: *const c_char,
    info: *const c_void,
    data: *mut c_void,
) -> herr_t;

/// `H5L_info_t`, and as far as it goes `H5L_info2_t`, whose token of a native file is the
/// address again.
#[repr(C)]
pub(super) struct LinkInfo {
    /// `H5L_type_t`
    pub(super) class: c_int,
    corder_valid: bool,
    corder: i64,
    /// `H5T_cset_t`
    pub(super) charset: c_int,
    /// The address of a hard link's object, the size of another link's value.
    pub(super) address_or_size: u64,
}

chunkwise_libhdf5::functions! {
    /// The functions that only copying a tree needs.
    TreeApi;
    required {
        fn H5Fget_name(hid_t, *mut c_char, usize) -> isize;
        fn H5Gcreate2(hid_t, *const c_char, hid_t, hid_t, hid_t) -> hid_t;
        fn H5Gcreate_anon(hid_t, hid_t, hid_t) -> hid_t;
        fn H5Gget_create_plist(hid_t) -> hid_t;
        fn H5Dcreate_anon(hid_t, hid_t, hid_t, hid_t, hid_t) -> hid_t;
        fn H5Oopen_by_addr(hid_t, u64) -> hid_t;
        fn H5Oclose(hid_t) -> herr_t;
        fn H5Ocopy(hid_t, *const c_char, hid_t, *const c_char, hid_t, hid_t) -> herr_t;
        fn H5Pset_copy_object(hid_t, c_uint) -> herr_t;
        fn H5Oincr_refcount(hid_t) -> herr_t;
        fn H5Odecr_refcount(hid_t) -> herr_t;
        fn H5Oget_comment(hid_t, *mut c_char, usize) -> isize;
        fn H5Oset_comment(hid_t, *const c_char) -> herr_t;
        fn H5Ldelete(hid_t, *const c_char, hid_t) -> herr_t;
        fn H5Lget_val(hid_t, *const c_char, *mut c_void, usize, hid_t) -> herr_t;
        fn H5Lunpack_elink_val(*const c_void, usize, *mut c_uint, *mut *const c_char, *mut *const c_char) -> herr_t;
        fn H5Lcreate_hard(hid_t, *const c_char, hid_t, *const c_char, hid_t, hid_t) -> herr_t;
        fn H5Lcreate_soft(*const c_char, hid_t, *const c_char, hid_t, hid_t) -> herr_t;
        fn H5Lcreate_external(*const c_char, *const c_char, hid_t, *const c_char, hid_t, hid_t) -> herr_t;
        fn H5Tcommitted(hid_t) -> htri_t;
        fn H5Tcommit2(hid_t, *const c_char, hid_t, hid_t, hid_t, hid_t) -> herr_t;
        fn H5Tcommit_anon(hid_t, hid_t, hid_t, hid_t) -> herr_t;
        fn H5Tget_create_plist(hid_t) -> hid_t;
        fn H5Tget_member_offset(hid_t, c_uint) -> usize;
        fn H5Screate(c_int) -> hid_t;
        fn H5Aiterate2(hid_t, c_int, c_int, *mut hsize_t, AttributeCallback, *mut c_void) -> herr_t;
        fn H5Aopen(hid_t, *const c_char, hid_t) -> hid_t;
        fn H5Acreate2(hid_t, *const c_char, hid_t, hid_t, hid_t, hid_t) -> hid_t;
        fn H5Aget_type(hid_t) -> hid_t;
        fn H5Aget_space(hid_t) -> hid_t;
        fn H5Aget_create_plist(hid_t) -> hid_t;
        fn H5Aread(hid_t, hid_t, *mut c_void) -> herr_t;
        fn H5Awrite(hid_t, hid_t, *const c_void) -> herr_t;
        fn H5Aclose(hid_t) -> herr_t;
        fn H5Adelete(hid_t, *const c_char) -> herr_t;
        fn H5Aexists(hid_t, *const c_char) -> htri_t;
        fn H5Dvlen_reclaim(hid_t, hid_t, hid_t, *mut c_void) -> herr_t;
        fn H5Rcreate(*mut c_void, hid_t, *const c_char, c_int, hid_t) -> herr_t;
        fn H5Rdereference2(hid_t, hid_t, c_int, *const c_void) -> hid_t;
        fn H5Rget_region(hid_t, c_int, *const c_void) -> hid_t;
        fn H5Pset_char_encoding(hid_t, c_int) -> herr_t;
        fn H5Pset_obj_track_times(hid_t, bool) -> herr_t;
        fn H5Pget_link_creation_order(hid_t, *mut c_uint) -> herr_t;
        fn H5Pset_link_creation_order(hid_t, c_uint) -> herr_t;
        fn H5Pget_link_phase_change(hid_t, *mut c_uint, *mut c_uint) -> herr_t;
        fn H5Pset_link_phase_change(hid_t, c_uint, c_uint) -> herr_t;
        fn H5Pget_est_link_info(hid_t, *mut c_uint, *mut c_uint) -> herr_t;
        fn H5Pset_est_link_info(hid_t, c_uint, c_uint) -> herr_t;
        fn H5Pget_local_heap_size_hint(hid_t, *mut usize) -> herr_t;
        fn H5Pset_local_heap_size_hint(hid_t, usize) -> herr_t;
        fn H5Pget_attr_creation_order(hid_t, *mut c_uint) -> herr_t;
        fn H5Pset_attr_creation_order(hid_t, c_uint) -> herr_t;
        fn H5Pget_attr_phase_change(hid_t, *mut c_uint, *mut c_uint) -> herr_t;
        fn H5Pset_attr_phase_change(hid_t, c_uint, c_uint) -> herr_t;
        fn H5Pget_obj_track_times(hid_t, *mut bool) -> herr_t;
        fn H5Pmodify_filter(hid_t, c_int, c_uint, usize, *const c_uint) -> herr_t;
        fn H5Pset_filter(hid_t, c_int, c_uint, usize, *const c_uint) -> herr_t;
        fn H5Pget_external(hid_t, c_uint, usize, *mut c_char, *mut i64, *mut hsize_t) -> herr_t;
        fn H5Pget_virtual_count(hid_t, *mut usize) -> herr_t;
        fn H5Pget_virtual_filename(hid_t, usize, *mut c_char, usize) -> isize;
        fn H5Zfilter_avail(c_int) -> htri_t;
    }
    optional {
        // H5Literate up to 1.10, H5Literate2 from 1.12 on.
        fn H5Literate(hid_t, c_int, c_int, *mut hsize_t, LinkCallback, *mut c_void) -> herr_t;
        fn H5Literate2(hid_t, c_int, c_int, *mut hsize_t, LinkCallback, *mut c_void) -> herr_t;
        // H5Tdecode up to 1.14, H5Tdecode1 from 2.0 on.
        fn H5Tdecode(*const c_void) -> hid_t;
        fn H5Tdecode1(*const c_void) -> hid_t;
        // References that hold memory, from 1.12 on.
        fn H5Rget_type(*const c_void) -> c_int;
        fn H5Ropen_object(*mut c_void, hid_t, hid_t) -> hid_t;
        fn H5Ropen_region(*mut c_void, hid_t, hid_t) -> hid_t;
        fn H5Rget_attr_name(*const c_void, *mut c_char, usize) -> isize;
        fn H5Rcreate_object(hid_t, *const c_char, hid_t, *mut c_void) -> herr_t;
        fn H5Rcreate_region(hid_t, *const c_char, hid_t, hid_t, *mut c_void) -> herr_t;
        fn H5Rcreate_attr(hid_t, *const c_char, *const c_char, hid_t, *mut c_void) -> herr_t;
        fn H5Rdestroy(*mut c_void) -> herr_t;
    }
    globals {
        H5T_STD_REF_OBJ_g,
        H5T_STD_REF_DSETREG_g,
        H5P_CLS_GROUP_CREATE_ID_g,
        H5P_CLS_OBJECT_COPY_ID_g,
    }
}
