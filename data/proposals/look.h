#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/proposals/proposal.h"

// What a path is to the kinds of datasets, for `tutti init`. A function for each kind: a proposal, or nullopt
// for data of other kinds. All throw UserError of data that lack what a model needs. Free of libtorch.
namespace tutti {

std::optional<Proposal> look_at_mds(const std::string& path);
std::optional<Proposal> look_at_tar_shards(const std::string& path);  // files, or folders of them
std::optional<Proposal> look_at_masks(const std::string& path);  // folders of pictures and of their masks
std::optional<Proposal> look_at_image_folder(const std::string& path);
std::optional<Proposal> look_at_cifar(const std::string& folder);
std::optional<Proposal> look_at_mnist(const std::string& folder);
std::optional<Proposal> look_at_idx(const std::string& folder);   // one pair of files
std::optional<Proposal> look_at_arrays(const std::string& path);  // HDF5, numpy's .npz and folders of .npy
// What the user says of a file.
struct LookOptions {
  std::string tokenizer = "";             // a tokenizer.json or its folder, for texts; "": none
  std::vector<std::string> targets = {};  // columns of a table; empty: by their names
  bool names_tokenizer = false;           // the user does; else it may lie beside the file
};
// Of JSON lines only tables of pictures.
std::optional<Proposal> look_at_table(const std::string& file, const LookOptions& options);
// A text of another name that is a table.
std::optional<Proposal> look_at_sniffed_table(const std::string& file, const LookOptions& options);
Proposal look_at_texts(const std::string& file, const std::string& tokenizer);
Proposal look_at_tokens(const std::string& file);
Proposal look_at_bytes(const std::string& file, int64_t bytes);

// Asks the kinds in order. Without a tokenizer: a tokenizer.json beside the texts, if any. Throws UserError
// if recipes know no data of this kind.
Proposal look_at(const std::string& path, const LookOptions& options = {});

// The built-in random data.
Proposal random_data();

}  // namespace tutti
