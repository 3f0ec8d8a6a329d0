#pragma once

#include <hdf5.h>
#include <signal.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "io/hdf5/hdf5_storage.h"

// For the sources in io/hdf5 only. Without libtorch.
namespace tutti {

// A lock around every use of libhdf5, which need not be thread-safe. Disables printing of error stacks. Not
// recursive.
class Hdf5Session {
 public:
  Hdf5Session();
  ~Hdf5Session();
  Hdf5Session(const Hdf5Session&) = delete;
  Hdf5Session& operator=(const Hdf5Session&) = delete;

 private:
  std::unique_lock<std::mutex> lock_;
  H5E_auto2_t printer_ = nullptr;
  void* printer_data_ = nullptr;
};

// Owns an identifier of libhdf5 and closes it with `close`.
class Hdf5Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Hdf5Handle() = default;
  Hdf5Handle(hid_t id, Close close) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept
      : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Hdf5Handle& operator=(Hdf5Handle&& other) noexcept;
  ~Hdf5Handle() { reset(); }

  bool good() const { return id_ >= 0; }
  void reset();
  operator hid_t() const { return id_; }  // NOLINT: implicit, for libhdf5's calls

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

// While a dataset of the file is opened: libhdf5 1.10 divides by the size of its chunks. If that is 0, prints
// one error and ends the process with exit code 2, since libhdf5 cannot be used after a signal.
class DivisionGuard {
 public:
  explicit DivisionGuard(const std::string& path);
  ~DivisionGuard();
  DivisionGuard(const DivisionGuard&) = delete;

 private:
  std::string text_;
  struct sigaction before_ {};
};

// The innermost message on libhdf5's error stack: "unable to open file".
std::string hdf5_error();

// The path of the file that has this object, which links may have led to.
std::string name_of_file(hid_t object);

// Asserts the success of a call that cannot fail on valid arguments.
void hdf5_check(bool good, const char* what);

Hdf5Handle hdf5_space(const std::vector<int64_t>& shape);  // a scalar space for no dimensions
std::vector<int64_t> shape_of_hdf5(hid_t space);

// Opens a file to read, without a lock, which file systems of clusters often do not have. Not good() if that
// fails.
Hdf5Handle open_hdf5(const std::string& path);

// Calls visit(path, object) for the datasets of a file by name; if soft links are followed, also for datasets
// and groups behind links. An object that libhdf5 cannot open is not good().
using Hdf5Visit = std::function<void(const std::string& path, hid_t object)>;
void visit_datasets(hid_t file, SoftLinks links, const Hdf5Visit& visit);

// Where a link leads: "a link to x.h5, which cannot be opened", "a link to /y, which leads nowhere". "" for a
// link to an object, or without a link.
std::string dead_link_text(hid_t file, const std::string& path);

}  // namespace tutti
