#pragma once

#include <string>
#include <vector>

#include "data/readers/image_files.h"
#include "data/readers/options.h"
#include "data/streams/sample_stream.h"

namespace tutti {

// The files that a path means: one file; several by {000..012}, {a,b}, * and ?; files of a folder that end in
// .tar. Sorted, but braces keep their order. Throws UserError without a file.
std::vector<std::string> shard_paths(const std::string& path);

// The samples of the shards, in their order. Every header is read now, and kept are 32 bytes a sample. Throws
// UserError with the shard.
ImageSourcePtr open_tar_shards(const WebDatasetOptions& options);

// The samples of the joined tar files that a command writes. An image without a class, or with an unknown
// class, is an error with the command and the sample's number; or is left out. Throws UserError.
ImageSourcePtr open_tar_stream(const WebDatasetOptions& options, const SampleStream::Options& stream);

}  // namespace tutti
