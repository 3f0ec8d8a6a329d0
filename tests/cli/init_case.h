#pragma once

#include <gtest/gtest.h>

#include <string>

#include "cli/init/look.h"
#include "tests/runtime/scratch.h"

namespace tutti {

// A folder with data that `tutti init` looks into.
class InitCase : public testing::Test {
 protected:
  FoundData found(const std::string& name) const { return look_into(scratch_.path(name), scratch_.path()); }
  // The value of a key; "" = none.
  static std::string line(const RecipeLines& lines, const std::string& key) {
    for (const RecipeLine& one : lines)
      if (one.key == key) return one.value;
    return "";
  }

  Scratch scratch_;
};

}  // namespace tutti
