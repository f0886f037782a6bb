# Read by CMake at the beginning of llama.cpp's own build (.cargo/config.toml says so).

# llama-cpp-sys-2 builds llama.cpp's helpers for command-line programs (chat templates, an HTTP server, downloads)
# unless its default features are off, and llama-cpp-2 leaves them on. Nothing of ours calls them.
set(LLAMA_BUILD_COMMON OFF CACHE BOOL "" FORCE)

# The arithmetic is in ggml, at -O3. The library `llama` reads files and lays out the graphs of some 150
# architectures: long to optimise, and not where a model's time goes.
cmake_language(DEFER CALL target_compile_options llama PRIVATE -O1)
