/** A file below a directory; `path` is relative to it, with `/`. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

/** The files a user names on the command line, on the machine the program runs on. Errors are AppError INPUT_* with the path and exit code 2. */
export interface InputFiles {
  /** The file's text; `-` is standard input. Not UTF-8 comes out with U+FFFD, which readers refuse. */
  readText(path: string): Promise<string>;
  /**
   * All files below a directory, in lexical order of their paths. A symbolic link in place of the directory is refused, as kubeadm does.
   * @param isDesired by path below the directory: others are listed without being read, and have an empty text
   */
  readTree(directory: string, isDesired: (path: string) => boolean): Promise<readonly TreeFile[]>;
  exists(path: string): Promise<boolean>;
  /** Links are followed. */
  isDirectory(path: string): Promise<boolean>;
}

/** The files and variables of the user who runs the program. */
export interface LocalFiles {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly input: InputFiles;
  /** The path counted from the working directory. */
  absolutePath(path: string): string;
  /** Writes a file of this machine, atomically; a file that may hold secrets is for its owner alone. */
  writeLocalFile(path: string, text: string): Promise<void>;
}
