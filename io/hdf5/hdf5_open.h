#pragma once

#include <string>

#include "io/hdf5/hdf5_handle.h"

// For the sources in io/hdf5 only. Without libtorch.
namespace tutti {

// Opens a dataset to read. `path` names the file in errors. Without libhdf5's cache of chunks, which trusts
// the sizes of chunks without filters in the file's index, and would keep data that is read once.
Hdf5Handle open_dataset(hid_t file, const std::string& path, const std::string& name);

// Throws UserError unless the file is large enough for the dataset's claims at a good compression, so that a
// small file cannot use much memory. Also throws if a source of a virtual dataset is missing: libhdf5 would
// read fill values instead.
void require_sound(hid_t dataset, const std::string& name);

}  // namespace tutti
