#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"

namespace tutti {

enum class WordMatch { kWhole, kBegun };  // kBegun: "stopping" is found in "stopper", too

// Entries of the catalogs about a topic ("learning rate", "accuracy"), best first, a line each: the name to
// give to `explain`, and its meaning. By names, by words of texts and by a list of synonyms. "" if there is
// nothing.
std::string topic_text(std::span<const Catalog> catalogs, const std::string& topic, WordMatch match);

// Other words for topics, each with names of sections, kinds and keys (synonyms.txt).
const std::map<std::string, std::vector<std::string>>& synonyms();

// The synonyms, and the words of all names, for suggestions.
std::vector<std::string> topic_words(std::span<const Catalog> catalogs);

// A hint for the reader of a name that is also a synonym: "See also precision, ...". "" for other words.
std::string see_also(std::span<const Catalog> catalogs, const std::string& word);

}  // namespace tutti
