#include "io/hdf5/hdf5_open.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "io/hdf5/hdf5_chunks.h"
#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/text.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

using Shape = std::vector<int64_t>;

// Bytes that may be missing of a dataset, and are then read as fill values, in a file with almost no data.
constexpr uint64_t kSmallBytes = uint64_t{1} << 24;
constexpr uint64_t kFewChunks = uint64_t{1} << 20;
constexpr uint64_t kLargestChunk = UINT32_MAX;  // in HDF5
constexpr uint64_t kMostCompression = 1032;     // by deflate
constexpr int kMostLayers = 8;                  // of virtual datasets of virtual datasets
constexpr std::size_t kMostUnited = 1000;  // mappings of any form, which are united in a time that grows fast

std::string bytes_text(uint64_t bytes) {
  return bytes > INT64_MAX ? "more than 2^63 bytes" : grouped(static_cast<int64_t>(bytes)) + " bytes";
}

std::string list_text(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return '[' + text + ']';
}

uint64_t product(uint64_t a, uint64_t b) {
  uint64_t all = 0;
  return __builtin_mul_overflow(a, b, &all) ? UINT64_MAX : all;
}

// The size of the file that the dataset lies in.
uint64_t file_bytes(hid_t dataset) {
  const Hdf5Handle file(H5Iget_file_id(dataset), H5Fclose);
  hsize_t bytes = 0;
  return H5Fget_filesize(file, &bytes) < 0 ? 0 : bytes;
}

// The sources of virtual datasets that were found sound, by path and name.
struct SoundSource {
  Shape shape;
  int layer = 0;  // the least that it was found in
};
using SoundSources = std::map<std::pair<std::string, std::string>, SoundSource>;

class Claims {
 public:
  Claims(hid_t dataset, std::string path, const std::string& name, SoundSources& sound, int layers)
      : dataset_(dataset),
        list_(H5Dget_create_plist(dataset), H5Pclose),
        path_(std::move(path)),
        where_("dataset '" + on_one_line(name) + "' "),
        sound_(sound),
        layers_(layers) {
    const Hdf5Handle space(H5Dget_space(dataset), H5Sclose), type(H5Dget_type(dataset), H5Tclose);
    shape_ = shape_of_hdf5(space);
    item_ = H5Tget_size(type);
    bytes_ = bytes_of(shape_, item_);
  }

  void require_sound() const {
    if (!are_numbers_sound()) fail("has damaged numbers: their bits lie outside of their bytes");
    const H5D_layout_t layout = H5Pget_layout(list_);
    if (layout == H5D_CHUNKED) return require_chunks();
    if (layout == H5D_VIRTUAL) return require_sources();
    if (H5Pget_external_count(list_) > 0) refuse_external();
    const uint64_t stored = H5Dget_storage_size(dataset_);
    const bool is_unwritten = layout == H5D_CONTIGUOUS && stored == 0 && bytes_ <= kSmallBytes;
    if (const uint64_t held = std::min(stored, file_bytes(dataset_)); bytes_ > held && !is_unwritten)
      fail_unheld(held);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throw UserError({path_}, where_ + what); }

  [[noreturn]] void fail_unheld(uint64_t held) const {
    fail("claims to be " + list_text(shape_) + ", " + bytes_text(bytes_) + ", but the file has " +
         (held == 0 ? "nothing" : "only " + bytes_text(held)) + " of it");
  }

  // libhdf5 converts numbers as their type says.
  bool are_numbers_sound() const {
    Hdf5Handle type(H5Dget_type(dataset_), H5Tclose);
    if (H5Tget_class(type) == H5T_ENUM) type = Hdf5Handle(H5Tget_super(type), H5Tclose);
    const H5T_class_t kind = H5Tget_class(type);
    if (kind != H5T_INTEGER && kind != H5T_FLOAT) return true;
    const std::size_t bits = 8 * item_, precision = H5Tget_precision(type);
    const int offset = H5Tget_offset(type);
    if (precision == 0 || offset < 0 || precision + static_cast<std::size_t>(offset) > bits) return false;
    if (kind == H5T_INTEGER) return true;
    std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
    return H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
           sign < bits && exponent < bits && mantissa < bits && exponent_bits > 0 && mantissa_bits > 0 &&
           exponent_bits <= bits - exponent && mantissa_bits <= bits - mantissa;
  }

  void require_chunks() const {
    const Hdf5Storage storage = storage_of(dataset_, shape_, item_);
    if (storage.chunk.size() != shape_.size())
      fail("has damaged chunks: " + list_text(storage.chunk) + ", for data of " + list_text(shape_));
    const uint64_t chunk = bytes_of(storage.chunk, item_);
    if (chunk > kLargestChunk || (chunk > kSmallBytes && chunk / 4 > bytes_))
      fail("has chunks of " + list_text(storage.chunk) + ", " + bytes_text(chunk) + ", for data of " +
           list_text(shape_) + ", " + bytes_text(bytes_));
    const Hdf5Handle space(H5Dget_space(dataset_), H5Sclose);
    hsize_t chunks = 0;
    if (H5Dget_num_chunks(dataset_, space, &chunks) < 0)
      fail("cannot be read: the index of its chunks is damaged: " + hdf5_error());
    const uint64_t stored = H5Dget_storage_size(dataset_), decoded = product(chunks, chunk);
    const bool is_plain = storage.filters.empty(), is_known = is_plain || storage.decodable;
    const uint64_t most = is_plain ? decoded : is_known ? product(chunks, most_stored(chunk)) : UINT64_MAX;
    if (stored < (is_plain ? decoded : chunks) || stored > std::min(most, file_bytes(dataset_)))
      fail("has " + grouped(static_cast<int64_t>(chunks)) + " chunks of " + bytes_text(chunk) +
           ", but in the file their sizes add up to " + bytes_text(stored) + ": damaged");
    if (!may_be_held(is_known ? stored : decoded, chunks, storage.chunk)) fail_unheld(stored);
  }

  bool may_be_held(uint64_t held, uint64_t chunks, const Shape& chunk) const {
    const uint64_t all_chunks = chunks_of(chunk);
    return (bytes_ <= kSmallBytes || bytes_ / kMostCompression <= held) &&
           (all_chunks <= kFewChunks || all_chunks / kMostCompression <= chunks);
  }

  // The chunks that the whole dataset would have.
  uint64_t chunks_of(const Shape& chunk) const {
    uint64_t count = 1;
    for (std::size_t dim = 0; dim < std::min(chunk.size(), shape_.size()); ++dim)
      if (chunk[dim] > 0) count = product(count, static_cast<uint64_t>((shape_[dim] - 1) / chunk[dim] + 1));
    return count;
  }

  [[noreturn]] void refuse_external() const;
  void require_sources() const;
  void require_source(const std::string& file, const std::string& name, const Shape& end) const;
  void require_sources_by(const std::string& file, const std::string& name) const;
  uint64_t unmapped_numbers(const std::vector<Hdf5Handle>& mappings) const;
  using Block = std::pair<uint64_t, uint64_t>;  // its first row, and the row behind it
  std::optional<Block> rows_of(hid_t mapping) const;
  uint64_t unmapped_rows(const std::vector<Hdf5Handle>& mappings) const;

  hid_t dataset_;
  Hdf5Handle list_;
  std::string path_, where_;
  SoundSources& sound_;
  int layers_;
  Shape shape_;
  std::size_t item_ = 1;
  uint64_t bytes_ = 0;
};

using VirtualName = ssize_t (*)(hid_t list, size_t mapping, char* name, size_t size);

std::string virtual_name(VirtualName get, hid_t list, std::size_t mapping) {
  const ssize_t length = get(list, mapping, nullptr, 0);
  std::string name(static_cast<size_t>(std::max<ssize_t>(length, 0)) + 1, '\0');
  get(list, mapping, name.data(), name.size());
  name.pop_back();
  return name;
}

// The name of a source: %% is %, and %b the number of one of any number of sources, as many as there are.
std::string name_of_source(const std::string& name, int64_t number) {
  std::string text;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_escape = name[i] == '%' && i + 1 < name.size();
    if (is_escape && name[i + 1] == 'b')
      text += std::to_string(number), ++i;
    else
      text += name[i], i += is_escape && name[i + 1] == '%' ? 1 : 0;
  }
  return text;
}

bool is_pattern(const std::string& name) { return name_of_source(name, 0) != name_of_source(name, 1); }

// The path where libhdf5 finds the source file of a virtual dataset; "" if it does not.
std::string source_path(const std::string& path, const std::string& source) {
  if (source == ".") return path;
  std::error_code error;
  std::vector<fs::path> names = {source}, folders = {fs::path(path).parent_path(), "",
                                                     fs::canonical(path, error).parent_path()};
  if (names[0].is_absolute()) names.push_back(names[0].filename());
  for (const fs::path& name : names)
    for (const fs::path& folder : folders)
      if (fs::exists(folder / name, error)) return folder / name;
  return "";
}

// Raw bytes of any file that the user may read would be taken for numbers.
void Claims::refuse_external() const {
  char name[4096] = {};
  off_t offset = 0;
  hsize_t size = 0;
  if (H5Pget_external(list_, 0, sizeof name - 1, name, &offset, &size) < 0)
    fail("cannot be read: " + hdf5_error());
  fail("has its numbers outside of the file, as raw bytes of '" + on_one_line(name) +
       "', which are not read: copy them into the file");
}

// Removes the numbers of one mapping from the numbers that are not mapped yet.
bool take_mapped(hid_t unmapped, hid_t mapping) {
  const H5S_sel_type type = H5Sget_select_type(mapping);
  if (type == H5S_SEL_ALL) return H5Sselect_none(unmapped) >= 0;
  if (type == H5S_SEL_NONE || H5Sget_select_npoints(unmapped) == 0) return true;
  return H5Smodify_select(unmapped, H5S_SELECT_NOTB, mapping) >= 0;
}

// The shape that a source has at least if it holds all that is mapped; empty if that is not known.
Shape end_of(hid_t mapping) {
  const int dims = std::max(H5Sget_simple_extent_ndims(mapping), 0);
  std::vector<hsize_t> first(static_cast<std::size_t>(dims)), last(first);
  if (dims == 0 || H5Sget_select_npoints(mapping) < 1 ||
      H5Sget_select_bounds(mapping, first.data(), last.data()) < 0)
    return {};
  Shape end;
  for (const hsize_t index : last) end.push_back(static_cast<int64_t>(index) + 1);
  return end;
}

// At most kMostUnited mappings.
uint64_t Claims::unmapped_numbers(const std::vector<Hdf5Handle>& mappings) const {
  const Hdf5Handle unmapped(H5Dget_space(dataset_), H5Sclose);
  const std::vector<hsize_t> zeros(shape_.size()), shape(shape_.begin(), shape_.end());
  if (!shape.empty())
    hdf5_check(
        H5Sselect_hyperslab(unmapped, H5S_SELECT_SET, zeros.data(), nullptr, shape.data(), nullptr) >= 0,
        "H5Sselect_hyperslab");
  for (const Hdf5Handle& mapping : mappings)
    if (!take_mapped(unmapped, mapping)) fail("cannot be read: " + hdf5_error());
  return static_cast<uint64_t>(H5Sget_select_npoints(unmapped));
}

// The rows that the mapping lies in, unless it leaves out the ends of rows.
std::optional<Claims::Block> Claims::rows_of(hid_t mapping) const {
  const std::size_t dims = shape_.size();
  std::vector<hsize_t> first(dims), last(dims);
  if (dims == 0 || H5Sget_simple_extent_ndims(mapping) != static_cast<int>(dims) ||
      H5Sget_select_bounds(mapping, first.data(), last.data()) < 0)
    return std::nullopt;
  for (std::size_t dim = 1; dim < dims; ++dim)
    if (first[dim] != 0 || last[dim] + 1 != static_cast<hsize_t>(shape_[dim])) return std::nullopt;
  return Block{first[0], last[0] + 1};
}

// The numbers in rows that no mapping has.
uint64_t Claims::unmapped_rows(const std::vector<Hdf5Handle>& mappings) const {
  const uint64_t rows = shape_.empty() ? 1 : static_cast<uint64_t>(shape_[0]);
  const uint64_t row = rows == 0 ? 0 : bytes_of(shape_, 1) / rows;
  std::vector<Block> blocks;
  for (const Hdf5Handle& mapping : mappings) {
    const hssize_t numbers = H5Sget_select_npoints(mapping);
    if (numbers <= 0) continue;
    const auto block = rows_of(mapping);
    if (!block || product(block->second - block->first, row) != static_cast<uint64_t>(numbers))
      fail("is virtual, with " + grouped(std::ssize(mappings)) +
           " mappings, and not all of whole rows: of more than " + grouped(kMostUnited) +
           " it is not known whether they leave out numbers");
    blocks.push_back(*block);
  }
  std::ranges::sort(blocks);
  uint64_t covered = 0, left = 0;  // all rows before `covered` are seen
  for (const auto& [first, end] : blocks) {
    left += std::max(std::min(first, rows), covered) - covered;
    covered = std::max(covered, std::min(end, rows));
  }
  return product(left + rows - covered, row);
}

// libhdf5 would read the fill value where no source is mapped.
void Claims::require_sources() const {
  size_t count = 0;
  if (H5Pget_virtual_count(list_, &count) < 0) fail("cannot be read: " + hdf5_error());
  std::vector<Hdf5Handle> mappings;
  bool is_known = true;
  std::map<std::pair<std::string, std::string>, Shape> sources;
  for (size_t i = 0; i < count; ++i) {
    mappings.emplace_back(H5Pget_virtual_vspace(list_, i), H5Sclose);
    const Hdf5Handle from(H5Pget_virtual_srcspace(list_, i), H5Sclose);
    is_known = is_known && H5Sget_select_npoints(mappings.back()) >= 0;  // else it grows with its source
    const std::string file = virtual_name(H5Pget_virtual_filename, list_, i);
    const std::string name = virtual_name(H5Pget_virtual_dsetname, list_, i);
    if (is_pattern(file) || is_pattern(name)) {
      require_sources_by(file, name);
      continue;
    }
    Shape &most = sources[{file, name}], end = end_of(from);
    most.resize(std::max(most.size(), end.size()));
    for (std::size_t dim = 0; dim < end.size(); ++dim) most[dim] = std::max(most[dim], end[dim]);
  }
  for (const auto& [source, end] : sources)
    require_source(name_of_source(source.first, 0), name_of_source(source.second, 0), end);
  if (!is_known) return;
  const uint64_t left = count <= kMostUnited ? unmapped_numbers(mappings) : unmapped_rows(mappings);
  if (left > 0)
    fail("is virtual, and no source is mapped to at least " + grouped(static_cast<int64_t>(left)) +
         " of its numbers, which are " + list_text(shape_) + ": they would be read as fill values");
}

// libhdf5 would read the fill value in place of a missing source, and where a source ends early.
void Claims::require_source(const std::string& file, const std::string& name, const Shape& end) const {
  const std::string path = source_path(path_, file);
  if (path.empty() && std::getenv("HDF5_VDS_PREFIX")) return;
  const std::string needs = "needs the file '" + on_one_line(file) + "', which ";
  if (path.empty()) fail(needs + "does not exist");
  const int layer = layers_ + 1;
  if (layer > kMostLayers) fail("is virtual in more than " + std::to_string(kMostLayers) + " layers");
  const std::string whole =
      "needs the dataset '" + on_one_line(name) + "' of the file '" + on_one_line(file) + "', which ";
  const auto require_shape = [&](const Shape& has) {
    if (has.size() == end.size() && !std::equal(end.begin(), end.end(), has.begin(), std::less_equal<>()))
      fail(whole + "is " + list_text(has) + ": too small for the mapped data, up to " + list_text(end));
  };
  const auto known = sound_.find({path, name});
  if (known != sound_.end() && known->second.layer <= layer) return require_shape(known->second.shape);
  const Hdf5Handle opened = open_hdf5(path);
  if (!opened.good()) fail(needs + "cannot be read as an HDF5 file: " + hdf5_error());
  const DivisionGuard guard(path);
  const Hdf5Handle source(H5Dopen2(opened, name.c_str(), H5P_DEFAULT), H5Dclose);
  if (!source.good()) fail(whole + "does not exist");
  const Claims claims(source, name_of_file(source), name, sound_, layer);
  require_shape(claims.shape_);
  claims.require_sound();
  sound_[{path, name}] = {claims.shape_, layer};
}

// libhdf5 reads as many sources of a pattern as there are.
void Claims::require_sources_by(const std::string& file, const std::string& name) const {
  for (int64_t number = 0;; ++number) {
    const std::string source = name_of_source(file, number), dataset = name_of_source(name, number);
    const std::string path = source_path(path_, source);
    if (path.empty()) return;
    {
      const Hdf5Handle opened = open_hdf5(path);
      const DivisionGuard guard(path);
      if (!opened.good() || !Hdf5Handle(H5Dopen2(opened, dataset.c_str(), H5P_DEFAULT), H5Dclose).good())
        return;
    }
    require_source(source, dataset, {});
  }
}

// Never closed: closing them would clear the error of opening a dataset.
hid_t access_without_cache(H5D_vds_view_t view) {
  const auto list_of = [](H5D_vds_view_t shown) {
    const hid_t list = H5Pcreate(H5P_DATASET_ACCESS);
    hdf5_check(H5Pset_chunk_cache(list, 0, 0, H5D_CHUNK_CACHE_W0_DEFAULT) >= 0, "H5Pset_chunk_cache");
    hdf5_check(H5Pset_virtual_view(list, shown) >= 0, "H5Pset_virtual_view");
    return list;
  };
  static const hid_t longest = list_of(H5D_VDS_LAST_AVAILABLE), shortest = list_of(H5D_VDS_FIRST_MISSING);
  return view == H5D_VDS_LAST_AVAILABLE ? longest : shortest;
}

bool may_grow(hid_t dataset) {
  const Hdf5Handle list(H5Dget_create_plist(dataset), H5Pclose), space(H5Dget_space(dataset), H5Sclose);
  std::vector<hsize_t> most(static_cast<std::size_t>(std::max(H5Sget_simple_extent_ndims(space), 0)));
  if (H5Pget_layout(list) != H5D_VIRTUAL || most.empty()) return false;
  H5Sget_simple_extent_dims(space, nullptr, most.data());
  return std::ranges::find(most, H5S_UNLIMITED) != most.end();
}

Shape shape_of_dataset(hid_t dataset) { return shape_of_hdf5(Hdf5Handle(H5Dget_space(dataset), H5Sclose)); }

}  // namespace

Hdf5Handle open_dataset(hid_t file, const std::string& path, const std::string& name) {
  const DivisionGuard guard(path);
  const auto open = [&](H5D_vds_view_t view) {
    Hdf5Handle dataset(H5Dopen2(file, name.c_str(), access_without_cache(view)), H5Dclose);
    if (!dataset.good())
      throw UserError({path}, "dataset '" + on_one_line(name) + "' cannot be opened: " + hdf5_error());
    return dataset;
  };
  Hdf5Handle dataset = open(H5D_VDS_LAST_AVAILABLE);
  if (!may_grow(dataset)) return dataset;
  dataset.reset();  // else its view stays
  const Shape shortest = shape_of_dataset(open(H5D_VDS_FIRST_MISSING));
  dataset = open(H5D_VDS_LAST_AVAILABLE);
  const Shape longest = shape_of_dataset(dataset);  // libhdf5 only now sees how far the sources have grown
  if (longest == shortest) return dataset;
  require_sound(dataset, name);
  throw UserError({path}, "dataset '" + on_one_line(name) + "' is virtual, of sources that have " +
                              list_text(longest) + " at most and " + list_text(shortest) +
                              " at least: between them fill values would be read");
}

void require_sound(hid_t dataset, const std::string& name) {
  SoundSources sound;
  Claims(dataset, name_of_file(dataset), name, sound, 0).require_sound();
}

}  // namespace tutti
