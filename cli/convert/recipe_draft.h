#pragma once

#include <string>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// A setting that a conversion does not carry over, and the reason.
struct LeftOut {
  std::string name;  // the path in the file: "fsdp_config.limit_all_gathers"
  int line = 0;      // in the file
  std::string why;
};

// A recipe that is put together from another program's settings. Settings that no catalog has, or has with
// another meaning of the value, are left out, with the reason.
class RecipeDraft {
 public:
  // Sets a key of a section (or of the table of a kind in a list), by any of its names, if the catalog has
  // the key and takes the value. A value of none is ignored.
  void put(const std::string& section, const std::string& key, const Setting& value);
  void put(const std::string& section, const std::string& key, const Setting::Value& value);
  // Sets the kind, and each member of `options` as a key of the kind.
  void put_kind(const std::string& section, const std::string& kind, const Setting& options);
  // Adds a table to [[section]]. The kind must be one of the catalog, and all its required keys be given.
  void add_table(const std::string& section, const std::string& kind, const Setting& options);
  void leave_out(const Setting& given, const std::string& why);
  // The same with the reason that job/names/foreign_names.h has for the name.
  void leave_out(const Setting& given);

  bool has(const std::string& section, const std::string& key) const;
  // True if the catalog has the key, or the kind.
  static bool has_key(const std::string& section, const std::string& key);
  static bool has_kind(const std::string& section, const std::string& kind);

  Setting recipe() const;  // its sections in the order of the catalogs
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  std::vector<std::string> advice;  // steps before the recipe trains: a line each

 private:
  Setting* table_of(const std::string& section);
  // The value in the key's form; none if left out.
  Setting accepted(const Catalog& catalog, const std::string& kind, const std::string& key,
                   const Setting& value);

  Setting recipe_{Setting::Table{}, "", {}};
  std::vector<LeftOut> left_out_;
};

// Why tutti has no such name of Composer's, or tutti's replacement.
std::string why_left_out(const std::string& name);

}  // namespace tutti
