//! Which functions of libhdf5 are called here that nobody else needs?

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use chunkwise_libhdf5::binding::{herr_t, hid_t, hsize_t, htri_t};
use chunkwise_libhdf5::functions;

/// Above the lower 56 bits each handle has its kind, in every version that is bound.
pub const KIND_BIT: u32 = 56;

functions! {
    /// What is called for names, dataspaces and property lists.
    More;
    required {
        fn H5Iis_valid(hid_t) -> htri_t;
        fn H5Iget_name(hid_t, *mut c_char, usize) -> isize;
        fn H5Fget_name(hid_t, *mut c_char, usize) -> isize;
        fn H5Fget_obj_count(hid_t, c_uint) -> isize;
        fn H5Fget_obj_ids(hid_t, c_uint, usize, *mut hid_t) -> isize;
        fn H5Pget_virtual_view(hid_t, *mut c_int) -> herr_t;
        fn H5Pget_virtual_printf_gap(hid_t, *mut hsize_t) -> herr_t;
        fn H5Pget_virtual_prefix(hid_t, *mut c_char, usize) -> isize;
        fn H5Pequal(hid_t, hid_t) -> htri_t;
        fn H5Tconvert(hid_t, hid_t, usize, *mut c_void, *mut c_void, hid_t) -> herr_t;
        fn H5Sget_simple_extent_dims(hid_t, *mut hsize_t, *mut hsize_t) -> c_int;
        fn H5Sget_select_type(hid_t) -> c_int;
        fn H5Sget_select_npoints(hid_t) -> i64;
        fn H5Sget_select_bounds(hid_t, *mut hsize_t, *mut hsize_t) -> herr_t;
        fn H5Sis_regular_hyperslab(hid_t) -> htri_t;
        fn H5Sget_regular_hyperslab(hid_t, *mut hsize_t, *mut hsize_t, *mut hsize_t, *mut hsize_t) -> herr_t;
        fn H5Sget_select_hyper_nblocks(hid_t) -> i64;
        fn H5Sget_select_hyper_blocklist(hid_t, hsize_t, hsize_t, *mut hsize_t) -> herr_t;
        fn H5Sget_select_elem_pointlist(hid_t, hsize_t, hsize_t, *mut hsize_t) -> herr_t;
    }
    optional {}
    globals {
        H5P_LST_DATASET_XFER_ID_g,
        H5T_STD_I8LE_g,
        H5T_STD_I8BE_g,
        H5T_STD_I16LE_g,
        H5T_STD_I16BE_g,
        H5T_STD_I32LE_g,
        H5T_STD_I32BE_g,
        H5T_STD_I64LE_g,
        H5T_STD_I64BE_g,
        H5T_STD_U8LE_g,
        H5T_STD_U8BE_g,
        H5T_STD_U16LE_g,
        H5T_STD_U16BE_g,
        H5T_STD_U32LE_g,
        H5T_STD_U32BE_g,
        H5T_STD_U64LE_g,
        H5T_STD_U64BE_g,
        H5T_IEEE_F32LE_g,
        H5T_IEEE_F32BE_g,
        H5T_IEEE_F64LE_g,
        H5T_IEEE_F64BE_g,
    }
}
