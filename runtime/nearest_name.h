#pragma once

#include <string>
#include <vector>

namespace tutti {

// True for names that differ in upper and lower case, blanks, '-' and '_' alone: "SpeedMonitor",
// "speed_monitor".
bool same_name(const std::string& first, const std::string& second);

// True for names that a typing error turns into each other: at most one letter in three added, missing,
// replaced or exchanged with the next letter.
bool similar_name(const std::string& first, const std::string& second);

// The candidate that the user most likely means by `name`, or "". In this order: the same but for case, '-'
// and '_'; a typing error; the beginning of the candidate ("cosine"); a word of the candidate ("bf16" of
// "amp_bf16"); the candidate's initials ("learning_rate", "lr"); half of the letters.
std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

// The number of letters that are added, missing, replaced or exchanged with the next letter.
int edit_distance(const std::string& a, const std::string& b);

}  // namespace tutti
