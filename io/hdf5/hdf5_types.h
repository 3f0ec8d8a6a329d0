#pragma once

#include <c10/core/ScalarType.h>

#include <optional>
#include <string>

#include "io/hdf5/hdf5_handle.h"

// For the sources in io/hdf5 only.
namespace tutti {

// Convert between dtypes and file types (nullopt for text, compounds, ...). bool is h5py's enum of int8,
// bfloat16 a custom float that h5py reads as float32. Other enumerations are their integers.
Hdf5Handle hdf5_type(at::ScalarType dtype);
std::optional<at::ScalarType> dtype_of_hdf5(hid_t type);

// The names of an enumeration's values, a line each, if the values are 0, 1, ... in some order, and not bool;
// else "".
std::string names_of_values(hid_t type);

}  // namespace tutti
