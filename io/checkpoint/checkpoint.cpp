#include "io/checkpoint/checkpoint.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "io/checkpoint/newer_format.h"
#include "io/formats/dtypes.h"
#include "io/json/json_text.h"
#include "runtime/error.h"
#include "runtime/hashes.h"
#include "runtime/probe/probe.h"

namespace tutti {
namespace {

constexpr uint64_t kCopyBytes = uint64_t{16} << 20;  // at a time

constexpr const char* kManifest = "/manifest.json";
constexpr const char* kViewer = "checkpoint.h5";
constexpr std::string_view kReplaced = ".replaced";

bool has_elements(const Shape& extent) {
  return std::all_of(extent.begin(), extent.end(), [](int64_t size) { return size > 0; });
}

CheckpointPiece without_tensor(const CheckpointPiece& piece, uint64_t at) {
  return {piece.name, piece.shape, piece.offset, piece.extent, piece.dtype, {}, at, piece.strides};
}

void write_file(Disk& disk, const std::string& path, const std::string& text) {
  const auto file = disk.open(path, true);
  file->append(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
}

void remove_manifest(Disk& disk, const std::string& folder) {
  if (!disk.exists(folder + kManifest)) return;
  disk.remove_all(folder + kManifest);
  disk.sync_folder(folder);
}

std::string parent_of(const std::string& folder) {
  const size_t slash = folder.find_last_of('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : folder.substr(0, slash);
}

std::string last_name(const std::string& folder) { return folder.substr(folder.find_last_of('/') + 1); }

at::Tensor read_scalar(const Disk& disk, const std::string& path, const CheckpointPiece& piece) {
  at::Tensor scalar = at::empty({}, piece.dtype);
  disk.read_into(path, piece.at, {static_cast<std::byte*>(scalar.mutable_data_ptr()), scalar.nbytes()});
  return scalar;
}

// A view of all tensors in the ranks' files in `folder`, with links to parameters at the root.
Hdf5View view_of(const Disk& disk, const std::string& folder, const CheckpointManifest& manifest) {
  std::map<std::string, Hdf5VirtualArray> arrays;
  Hdf5View view;
  for (const RankFile& file : manifest.files) {
    for (const CheckpointPiece& piece : file.pieces) {
      if (piece.name.starts_with(kModelPrefix))
        view.links.emplace(piece.name.substr(kModelPrefix.size()), piece.name);
      if (piece.shape.empty()) {
        view.scalars.push_back(hdf5_array(piece.name, read_scalar(disk, folder + "/" + file.file, piece)));
        continue;
      }
      auto& array = arrays.try_emplace(piece.name, Hdf5VirtualArray{piece.name, piece.shape, piece.dtype, {}})
                        .first->second;
      array.sources.push_back({file.file, piece.offset, piece.extent});
    }
  }
  for (auto& [name, array] : arrays) view.arrays.push_back(std::move(array));
  return view;
}

void remove_unnamed(Disk& disk, const std::string& folder, const CheckpointManifest& manifest) {
  for (const std::string& name : disk.list(folder)) {
    const auto named = [&](const RankFile& file) { return file.file == name; };
    if (std::none_of(manifest.files.begin(), manifest.files.end(), named))
      disk.remove_all(folder + "/" + name);
  }
}

// Moves an older folder aside first: a folder cannot be renamed over one with files.
void replace_folder(Disk& disk, const std::string& from, const std::string& to, const std::string& parent) {
  const std::string aside = to + std::string(kReplaced);
  const bool older = disk.exists(to);
  if (older) {
    TUTTI_PROBE("checkpoint: an older checkpoint of the same step is replaced");
    disk.remove_all(aside);
    disk.rename(to, aside);
  }
  disk.rename(from, to);
  disk.sync_folder(parent);
  if (older) disk.remove_all(aside);
}

// The checkpoint's name if `name` is a replaced folder; else "".
std::string name_of_replaced(const std::string& name, const CheckpointNames& names) {
  if (!name.ends_with(kReplaced)) return "";
  const std::string whole = name.substr(0, name.size() - kReplaced.size());
  return names.fits(whole) ? whole : "";
}

}  // namespace

RankFile write_rank_file(Disk& disk, const std::string& folder, int rank,
                         const std::vector<CheckpointPiece>& pieces, Hdf5Layout* last) {
  disk.make_folders(folder);
  std::vector<Hdf5Array> arrays;
  for (const CheckpointPiece& piece : pieces) {
    if (has_elements(piece.extent)) arrays.push_back({piece.name, piece.extent, piece.dtype, piece.tensor});
  }
  RankFile file{"rank-" + std::to_string(rank) + ".h5", 0, 0, {}};
  const Hdf5Written written = write_hdf5(disk, folder + "/" + file.file, arrays, last);
  disk.sync_folder(folder);
  file.bytes = written.bytes;
  file.hash = written.hash;
  auto offset = written.offsets.begin();
  for (const CheckpointPiece& piece : pieces) {
    file.pieces.push_back(without_tensor(piece, has_elements(piece.extent) ? *offset++ : 0));
  }
  return file;
}

RankFile write_viewer(Disk& disk, const std::string& folder, const CheckpointManifest& manifest,
                      Hdf5Layout* last) {
  const auto written = write_hdf5_view(disk, folder + "/" + kViewer, view_of(disk, folder, manifest), last);
  return {kViewer, written.bytes, written.hash, {}};
}

void publish_checkpoint(Disk& disk, const std::string& unfinished, const std::string& folder,
                        const CheckpointManifest& manifest, const std::string& latest, Hdf5Layout* last) {
  CheckpointManifest complete = manifest;
  complete.files.push_back(write_viewer(disk, unfinished, manifest, last));
  remove_unnamed(disk, unfinished, complete);
  write_file(disk, unfinished + kManifest, complete.to_json());
  disk.sync_folder(unfinished);
  const std::string parent = parent_of(folder);
  replace_folder(disk, unfinished, folder, parent);
  if (!latest.empty()) disk.symlink(last_name(folder), parent + "/" + latest);
  disk.sync_folder(parent);
}

void write_manifest(Disk& disk, const std::string& folder, const CheckpointManifest& manifest) {
  disk.make_folders(folder);
  write_file(disk, folder + kManifest, manifest.to_json());
  disk.sync_folder(folder);
}

void remove_checkpoint(Disk& disk, const std::string& folder) {
  if (!disk.exists(folder)) return;
  remove_manifest(disk, folder);
  disk.remove_all(folder);
  disk.sync_folder(parent_of(folder));
}

void copy_checkpoint(Disk& disk, const std::string& checkpoint, const std::string& to) {
  const std::string folder = to.substr(0, to.find_last_not_of('/') + 1);
  if (disk.exists(folder)) throw OperatingError({folder}, "exists already");
  const std::string unfinished = unused_path(disk, folder + "-unfinished");
  disk.make_folders(unfinished);
  try {
    for (const std::string& name : disk.list(checkpoint)) {
      const auto file = disk.open(unfinished + "/" + name, /*truncate=*/true);
      const uint64_t size = disk.size(checkpoint + "/" + name);
      for (uint64_t done = 0; done < size; done += kCopyBytes)
        file->append(disk.read_range(checkpoint + "/" + name, done, std::min(kCopyBytes, size - done)));
      file->sync();
      file->close();
    }
    disk.sync_folder(unfinished);
    disk.rename(unfinished, folder);
  } catch (...) {
    disk.remove_all(unfinished);
    throw;
  }
  disk.sync_folder(parent_of(folder));
}

void remove_unpublished(Disk& disk, const std::string& checkpoints, const CheckpointNames& names) {
  for (const std::string& name : disk.list(checkpoints))
    if (names.fits_unfinished(name) || !name_of_replaced(name, names).empty()) {
      TUTTI_PROBE("checkpoint: an unfinished checkpoint of an earlier attempt is removed");
      disk.remove_all(checkpoints + "/" + name);
    }
}

void restore_replaced(Disk& disk, const std::string& checkpoints, const CheckpointNames& names) {
  if (!disk.exists(checkpoints)) return;
  for (const std::string& name : disk.list(checkpoints)) {
    const std::string whole = name_of_replaced(name, names);
    if (whole.empty() || disk.exists(checkpoints + "/" + whole)) continue;
    disk.rename(checkpoints + "/" + name, checkpoints + "/" + whole);
    disk.sync_folder(checkpoints);
  }
}

std::vector<std::string> published_checkpoints(const Disk& disk, const std::string& checkpoints,
                                               const CheckpointNames& names) {
  return names.ordered(disk.list(checkpoints));
}

namespace {

using StateJson = nlohmann::ordered_json;  // keeps the keys of the state in their order

constexpr int kFormat = 1;

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

uint64_t from_hex(const std::string& text) {
  uint64_t value = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size())
    throw OperatingError("bad hash '" + text + "'");
  return value;
}

// The text before and after the body. A manifest with another layout is serialised again for its hash.
constexpr std::string_view kBeforeHash = R"({"hash":")", kBeforeBody = R"(","manifest":)", kBehindBody = "}";
constexpr std::size_t kBodyAt = kBeforeHash.size() + 16 + kBeforeBody.size();

std::string hash_of(std::string_view body) { return hex(XXH3_64bits(body.data(), body.size())); }

StateJson to_json(const CheckpointPiece& piece) {
  StateJson json = {{"name", piece.name},     {"dtype", dtype_name(piece.dtype)}, {"shape", piece.shape},
                    {"offset", piece.offset}, {"extent", piece.extent},           {"at", piece.at}};
  if (!piece.strides.empty()) json["strides"] = piece.strides;
  return json;
}

// Renames the optimizer's tensors of older checkpoints.
std::string name_today(const std::string& name) {
  constexpr std::string_view kBefore = "optimizer/";
  return name.starts_with(kBefore) ? std::string(kOptimizersPrefix) + name.substr(kBefore.size()) : name;
}

CheckpointPiece piece_from(const StateJson& json) {
  CheckpointPiece piece;
  piece.name = name_today(json.at("name"));
  const auto dtype = dtype_of_name(json.at("dtype"));
  if (!dtype) throw OperatingError(piece.name + ": unknown dtype " + json.at("dtype").dump());
  piece.dtype = *dtype;
  piece.shape = json.at("shape").get<Shape>();
  piece.offset = json.at("offset").get<Shape>();
  piece.extent = json.at("extent").get<Shape>();
  piece.at = json.at("at");
  if (json.contains("strides")) piece.strides = json.at("strides").get<Shape>();
  return piece;
}

StateJson to_json(const RankFile& file) {
  StateJson pieces = StateJson::array();
  for (const CheckpointPiece& piece : file.pieces) pieces.push_back(to_json(piece));
  return {{"file", file.file}, {"bytes", file.bytes}, {"hash", hex(file.hash)}, {"pieces", pieces}};
}

RankFile file_from(const StateJson& json) {
  RankFile file{json.at("file"), json.at("bytes"), from_hex(json.at("hash")), {}};
  for (const StateJson& piece : json.at("pieces")) file.pieces.push_back(piece_from(piece));
  return file;
}

CheckpointManifest manifest_from(const StateJson& body) {
  const StateJson& format = body.at("format");
  if (format.is_number_integer() && format > kFormat)
    throw NewerFormat("is of format " + format.dump() + ", by a newer tutti; this tutti reads format " +
                      std::to_string(kFormat) + ". Continue with the newer one, or name another checkpoint");
  if (format != kFormat) throw OperatingError("format " + format.dump() + ", expected 1");
  CheckpointManifest manifest;
  for (const StateJson& file : body.at("files")) manifest.files.push_back(file_from(file));
  if (!body.at("state").is_null()) manifest.state = body.at("state").dump();
  return manifest;
}

}  // namespace

std::string CheckpointManifest::to_json() const {
  StateJson lines = StateJson::array();
  for (const RankFile& file : files) lines.push_back(tutti::to_json(file));
  const StateJson manifest = {{"format", kFormat},
                              {"files", std::move(lines)},
                              {"state", state.empty() ? StateJson() : parse_json<StateJson>(state)}};
  const std::string body = without_raw_controls(manifest.dump());
  std::string text(kBeforeHash);
  return text.append(hash_of(body)).append(kBeforeBody).append(body).append(kBehindBody);
}

CheckpointManifest CheckpointManifest::from_json(const std::string& text) try {
  const StateJson json = parse_json<StateJson>(text);
  const StateJson& body = json.at("manifest");
  const std::string_view as_written = std::string_view(text).substr(std::min(kBodyAt, text.size()));
  const auto& hash = json.at("hash");
  const std::string again = body.dump();  // older ones have controls as they are
  if (hash != hash_of(as_written.substr(0, as_written.size() - 1)) && hash != hash_of(again) &&
      hash != hash_of(without_raw_controls(again)))
    throw OperatingError("its hash does not match its content");
  return manifest_from(body);
} catch (const StateJson::exception& error) {
  TUTTI_PROBE("checkpoint: a manifest is torn");
  throw OperatingError("it is torn: " + json_problem(error));
}

}  // namespace tutti
