#pragma once

#include <string>
#include <utility>
#include <vector>

#include "recipe/catalog.h"
#include "recipe/setting.h"

namespace tutti {

// The section of `catalog` for a recipe that names the kind and gives only what it must: every other key has
// its default.
Setting smallest_section(const Catalog& catalog, const std::string& kind);

// The kinds of the catalog but that of a plugin.
std::vector<std::string> own_kinds(const Catalog& catalog);

// A recipe's section as the reader would give it: {"lr", 0.1}, ...; list_value({1.0, 2.0}) is a list's value.
Setting::Value list_value(const std::vector<Setting::Value>& items);
Setting section_with(std::vector<std::pair<std::string, Setting::Value>> keys);

// [optimizer]: sgd with a rate of 0.1 and a momentum of 0.9.
Setting momentum_sgd();

}  // namespace tutti
