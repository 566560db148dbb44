/** A file below a directory; `path` is relative to it, with `/`. */
export interface TreeFile {
  readonly path: string;
  readonly text: string;
}

/** Files on the local host that the user names on the command line. Errors are AppError INPUT_* with the path and exit code 2. */
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

/** Files and environment variables of the local user. */
export interface LocalFiles {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeDirectory: string;
  readonly input: InputFiles;
  /** The absolute path of a path relative to the working directory. */
  absolutePath(path: string): string;
  /** Writes a local file atomically; a file that may contain secrets is readable by its owner only. */
  writeLocalFile(path: string, text: string): Promise<void>;
}
