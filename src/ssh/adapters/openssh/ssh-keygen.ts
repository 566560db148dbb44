import { execa } from 'execa';

/** Runs `ssh-keygen -Y` on the local host with the text on standard input (OpenSSH 8.1 or later). @see openssh PROTOCOL.sshsig */
export async function runSshKeygen(
  args: readonly string[],
  input: string,
  { program = 'ssh-keygen', timeoutMs }: { readonly program?: string | undefined; readonly timeoutMs?: number | undefined } = {},
) {
  const { exitCode, stdout, stderr, code } = await execa(program, ['-Y', ...args], {
    input,
    reject: false,
    stripFinalNewline: false,
    ...(timeoutMs === undefined ? {} : { timeout: timeoutMs }),
  });
  if (code === 'ENOENT') return { failed: true, stdout: '', stderr: `${program} is not installed on the local host` };
  return { failed: exitCode !== 0, stdout, stderr };
}

/**
 * Signs a text. A passphrase is requested on the terminal; a key held by ssh-agent needs none.
 * @param signing.key path of the private key, or of the public key of a key held by ssh-agent
 * @returns the armored signature, or the message of ssh-keygen
 */
export async function signWithSshKeygen(
  text: string,
  { key, namespace }: { readonly key: string; readonly namespace: string },
  run: Pick<{ readonly program?: string | undefined; readonly timeoutMs?: number | undefined }, 'program'> = {},
): Promise<{ readonly signature: string } | { readonly issue: string }> {
  // No time limit: the user enters a passphrase or touches a security key.
  const { failed, stdout, stderr } = await runSshKeygen(['sign', '-q', '-f', key, '-n', namespace], text, run);
  return failed || stdout === '' ? { issue: lastLine(stderr) || 'ssh-keygen printed no signature' } : { signature: stdout };
}

/** The last line of an output of ssh-keygen, without its period. */
export function lastLine(text: string): string {
  return text.trim().split('\n').at(-1)?.replace(/\r$/, '').replace(/\.$/, '') ?? '';
}
