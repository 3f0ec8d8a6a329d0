#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "recipe/foreign_name.h"

namespace tutti {

// Names of one origin, several of which have the same counterpart.
class NameList {
 public:
  explicit NameList(std::string origin) : origin_(std::move(origin)) {}  // "transformers'"

  NameList& add(std::initializer_list<const char*> names, const std::string& target,
                const std::string& note = "") {
    for (const char* name : names) all_.push_back({name, target, note, origin_});
    return *this;
  }
  // Those without a counterpart.
  NameList& leave_out(std::initializer_list<const char*> names, const std::string& why) {
    return add(names, "", "not carried over: " + why);
  }
  const std::vector<ForeignName>& all() const { return all_; }

 private:
  std::string origin_;
  std::vector<ForeignName> all_;
};

}  // namespace tutti
