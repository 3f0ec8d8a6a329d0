#pragma once

#include <optional>
#include <string>

#include "data/proposals/proposal.h"

// What a path is to the kinds of datasets, for `tutti init`. A function for each kind: a proposal, or nullopt
// for data of other kinds. All throw UserError of data that lack what a model needs. Free of libtorch.
namespace tutti {

std::optional<Proposal> look_at_mds(const std::string& path);
std::optional<Proposal> look_at_tar_shards(const std::string& path);  // files, or folders of them
std::optional<Proposal> look_at_image_folder(const std::string& path);
std::optional<Proposal> look_at_cifar(const std::string& folder);
std::optional<Proposal> look_at_mnist(const std::string& folder);
std::optional<Proposal> look_at_idx(const std::string& folder);   // one pair of files
std::optional<Proposal> look_at_arrays(const std::string& path);  // HDF5, numpy's .npz and folders of .npy
// `tokenizer`: a tokenizer.json or its folder, for texts in tables and files; "": none.
std::optional<Proposal> look_at_table(const std::string& file, const std::string& tokenizer);
// A text of another name that is a table.
std::optional<Proposal> look_at_sniffed_table(const std::string& file, const std::string& tokenizer);
Proposal look_at_texts(const std::string& file, const std::string& tokenizer);
Proposal look_at_tokens(const std::string& file);
Proposal look_at_bytes(const std::string& file, int64_t bytes);

// Asks the kinds in order. `tokenizer`: as above; "": a tokenizer.json beside the texts, if any. Throws
// UserError if recipes know no data of this kind.
Proposal look_at(const std::string& path, const std::string& tokenizer = "");

// The built-in random data.
Proposal random_data();

}  // namespace tutti
