#include "io/hdf5/hdf5_handle.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/error.h"
#include "runtime/printable.h"
#include "runtime/regular_file.h"

namespace tutti {
namespace {

// One lock per process, since libhdf5 has global state.
std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

herr_t keep_first(unsigned n, const H5E_error2_t* error, void* text) {
  if (n == 0 && error->desc != nullptr) *static_cast<std::string*>(text) = on_one_line(error->desc);
  return 0;
}

herr_t find_too_many_links(unsigned, const H5E_error2_t* error, void* too_many) {
  if (error->min_num == H5E_NLINKS) *static_cast<bool*>(too_many) = true;
  return 0;
}

constexpr const char* kTooManyLinks =
    ", and more than 16 links in a row are not followed: they are circular, or too many";

// True if the call that failed last met more links in a row than libhdf5 follows, as those in a circle are.
bool met_too_many_links() {
  bool too_many = false;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, find_too_many_links, &too_many);
  return too_many;
}

// Hard links can make cycles of groups, and any number of paths to one group.
constexpr int kMaxGroupDepth = 32, kMostGroups = 10'000;

herr_t query_without_accumulator(const H5FD_t*, unsigned long* flags) {
  *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_AGGREGATE_SMALLDATA | H5FD_FEAT_DATA_SIEVE;
  return 0;
}

using OpenFile = H5FD_t* (*)(const char* name, unsigned flags, hid_t access, haddr_t most);

OpenFile& open_of_default_driver() {
  static OpenFile open = nullptr;
  return open;
}

// Also for links to other files and sources of virtual datasets.
H5FD_t* open_regular_file(const char* name, unsigned flags, hid_t access, haddr_t most) {
  if (!RegularFile(name).problem().empty()) return nullptr;
  return open_of_default_driver()(name, flags, access, most);
}

// The default driver without libhdf5's metadata accumulator, which reads beyond its memory if an address of a
// damaged file is near 2^64. Waits for no pipe. Takes no locks: H5Pset_file_locking would not hold for links
// to other files and for virtual datasets' sources, and libhdf5 opens no file in two ways at once. Never
// unregistered, as hdf5_memory.cpp says.
hid_t careful_driver_id() {
  static const hid_t id = [] {
    H5FD_t* const file = H5FDopen("/dev/null", H5F_ACC_RDONLY, H5P_DEFAULT, HADDR_UNDEF);
    hdf5_check(file != nullptr, "H5FDopen");
    H5FD_class_t driver = *file->cls;
    H5FDclose(file);
    driver.name = "tutti_careful";
    driver.query = query_without_accumulator;
    open_of_default_driver() = driver.open;
    driver.open = open_regular_file;
    driver.lock = nullptr;
    driver.unlock = nullptr;
    return H5FDregister(&driver);
  }();
  hdf5_check(id >= 0, "H5FDregister");
  return id;
}

// Never closed: closing it would clear the error of opening a file.
hid_t read_access() {
  static const hid_t id = [] {
    const hid_t list = H5Pcreate(H5P_FILE_ACCESS);
    hdf5_check(H5Pset_driver(list, careful_driver_id(), nullptr) >= 0, "H5Pset_driver");
    return list;
  }();
  return id;
}

std::string link_name(hid_t group, hsize_t index) {
  const ssize_t length =
      H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, nullptr, 0, H5P_DEFAULT);
  if (length < 0) return {};
  std::string name(static_cast<size_t>(length) + 1, '\0');
  H5Lget_name_by_idx(group, ".", H5_INDEX_NAME, H5_ITER_INC, index, name.data(), name.size(), H5P_DEFAULT);
  name.pop_back();
  return name;
}

// A group behind a soft link may be one that is being visited: in it no soft links are followed.
void visit_group(hid_t group, const std::string& prefix, int depth, int& groups, SoftLinks links,
                 const Hdf5Visit& visit) {
  H5G_info_t info{};
  if (depth > kMaxGroupDepth || ++groups > kMostGroups || H5Gget_info(group, &info) < 0) return;
  for (hsize_t i = 0; i < info.nlinks; ++i) {
    const std::string name = link_name(group, i);
    H5L_info_t link{};
    if (H5Lget_info(group, name.c_str(), &link, H5P_DEFAULT) < 0) continue;
    const bool is_hard = link.type == H5L_TYPE_HARD;
    if (!is_hard && links == SoftLinks::kIgnored) continue;
    const Hdf5Handle object(H5Oopen(group, name.c_str(), H5P_DEFAULT), H5Oclose);
    const H5I_type_t kind = object.good() ? H5Iget_type(object) : H5I_BADID;
    if (kind == H5I_BADID || kind == H5I_DATASET) visit(prefix + name, object);
    if (kind == H5I_GROUP && link.type != H5L_TYPE_EXTERNAL)
      visit_group(object, prefix + name + '/', depth + 1, groups, is_hard ? links : SoftLinks::kIgnored,
                  visit);
  }
}

const char*& text_of_division() {
  static const char* text = "";
  return text;
}

void end_by_division(int) {
  const char* text = text_of_division();
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text, std::strlen(text));
  _exit(2);
}

}  // namespace

std::string name_of_file(hid_t object) {
  std::string name(static_cast<size_t>(std::max<ssize_t>(H5Fget_name(object, nullptr, 0), 0)) + 1, '\0');
  H5Fget_name(object, name.data(), name.size());
  name.pop_back();
  return name;
}

DivisionGuard::DivisionGuard(const std::string& path)
    : text_("error: " + on_one_line(path) + ": a dataset in it has chunks of size 0: damaged\n") {
  text_of_division() = text_.c_str();
  struct sigaction action {};
  action.sa_handler = end_by_division;
  ::sigaction(SIGFPE, &action, &before_);
}

DivisionGuard::~DivisionGuard() { ::sigaction(SIGFPE, &before_, nullptr); }

Hdf5Session::Hdf5Session() : lock_(library_mutex()) {
  H5open();
  H5Eget_auto2(H5E_DEFAULT, &printer_, &printer_data_);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

Hdf5Session::~Hdf5Session() { H5Eset_auto2(H5E_DEFAULT, printer_, printer_data_); }

Hdf5Handle& Hdf5Handle::operator=(Hdf5Handle&& other) noexcept {
  reset();
  id_ = std::exchange(other.id_, H5I_INVALID_HID);
  close_ = other.close_;
  return *this;
}

void Hdf5Handle::reset() {
  if (good()) close_(id_);
  id_ = H5I_INVALID_HID;
}

std::string hdf5_error() {
  std::string text = "unknown HDF5 error";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &text);
  return text;
}

void hdf5_check(bool good, const char* what) { TUTTI_ASSERT(good, std::string(what) + ": " + hdf5_error()); }

Hdf5Handle hdf5_space(const std::vector<int64_t>& shape) {
  if (shape.empty()) return Hdf5Handle(H5Screate(H5S_SCALAR), H5Sclose);
  const std::vector<hsize_t> dims(shape.begin(), shape.end());
  Hdf5Handle space(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose);
  hdf5_check(space.good(), "H5Screate_simple");
  return space;
}

std::vector<int64_t> shape_of_hdf5(hid_t space) {
  const int rank = H5Sget_simple_extent_ndims(space);
  std::vector<hsize_t> dims(rank > 0 ? static_cast<size_t>(rank) : 0);
  if (!dims.empty()) H5Sget_simple_extent_dims(space, dims.data(), nullptr);
  return {dims.begin(), dims.end()};
}

Hdf5Handle open_hdf5(const std::string& path) {
  if (!RegularFile(path).problem().empty()) return Hdf5Handle(H5I_INVALID_HID, H5Fclose);
  return Hdf5Handle(H5Fopen(path.c_str(), H5F_ACC_RDONLY, read_access()), H5Fclose);
}

void visit_datasets(hid_t file, SoftLinks links, const Hdf5Visit& visit) {
  const Hdf5Handle root(H5Gopen2(file, "/", H5P_DEFAULT), H5Gclose);
  const DivisionGuard guard(name_of_file(file));
  int groups = 0;
  visit_group(root, "", 0, groups, links, visit);
}

std::string dead_link_text(hid_t file, const std::string& path) {
  H5L_info_t link{};
  if (H5Lget_info(file, path.c_str(), &link, H5P_DEFAULT) < 0) return "";
  if (link.type != H5L_TYPE_SOFT && link.type != H5L_TYPE_EXTERNAL) return "";
  if (const Hdf5Handle object(H5Oopen(file, path.c_str(), H5P_DEFAULT), H5Oclose); object.good()) return "";
  const bool is_too_long = met_too_many_links();
  std::string value(link.u.val_size + 1, '\0');
  if (H5Lget_val(file, path.c_str(), value.data(), link.u.val_size, H5P_DEFAULT) < 0) return "a damaged link";
  if (link.type == H5L_TYPE_SOFT)
    return "a link to " + on_one_line(value.c_str()) +
           (is_too_long ? kTooManyLinks : ", which is not in the file");
  const char *file_name = nullptr, *object = nullptr;
  if (H5Lunpack_elink_val(value.data(), link.u.val_size, nullptr, &file_name, &object) < 0)
    return "a damaged link";
  return "a link to " + on_one_line(object) + " in " + on_one_line(file_name) +
         (is_too_long ? kTooManyLinks : ", which is not there");
}

}  // namespace tutti
