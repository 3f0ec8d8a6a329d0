#pragma once

#include <span>
#include <string>
#include <vector>

#include "recipe/catalog.h"

namespace tutti {

enum class WordMatch { kWhole, kBegun };  // kBegun: "stopping" is found in "stopper", too

// What the catalogs have about a topic ("learning rate", "accuracy"), best first, in a line each: the name to
// give to `explain`, and its meaning. By names, by words of texts and by a list of synonyms. "" if there is
// nothing.
std::string topic_text(std::span<const Catalog> catalogs, const std::string& topic, WordMatch match);

// The words of the list of synonyms.
std::vector<std::string> synonym_words();

// These, and the words of all names, for suggestions.
std::vector<std::string> topic_words(std::span<const Catalog> catalogs);

// What a synonym stands for, for a reader who found a name like it: "See also precision, ...". "" if the word
// is none.
std::string see_also(std::span<const Catalog> catalogs, const std::string& word);

}  // namespace tutti
