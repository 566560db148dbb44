import { spawn } from 'node:child_process';

/**
 * Runs the editor of the user on the terminal of this process, and waits for its end.
 * @param editor a command line of the shell, such as `code --wait`; the path follows as one argument
 * @returns the exit code; 127: the shell does not find the editor; 1: it was ended by a signal
 */
export function runEditor(editor: string, path: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn('sh', ['-c', `${editor} "$1"`, 'sh', path], { stdio: 'inherit' });
    child.once('error', reject);
    child.once('close', (exitCode) => resolve(exitCode ?? 1));
  });
}
