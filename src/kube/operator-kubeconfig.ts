import type { SensitiveText } from '../base/text/secret.ts';
import { type KubeconfigText, mergeKubeconfigs } from './kubeconfig-merge.ts';
import { clientCertificateKubeconfig, tokenKubeconfig } from './kubeconfig-render.ts';

/**
 * Only the functions below construct it: the class is not exported, and its private field keeps other values
 * from having its type.
 */
class TrustedKubeconfig {
  readonly #text: string | SensitiveText;
  /** Source of the kubeconfig for messages; relative paths are relative to its folder. */
  readonly file: string;

  constructor(text: string | SensitiveText, file: string) {
    this.#text = text;
    this.file = file;
  }

  get text(): string | SensitiveText {
    return this.#text;
  }
}

/**
 * A kubeconfig of the operator: its programs and files on the local host are trusted. No function creates one
 * from text, because text could originate from a host: see `HostKubeconfig`.
 */
export type OperatorKubeconfig = TrustedKubeconfig;

/**
 * Reads kubeconfig files of the local host; several are merged as kubectl merges those of KUBECONFIG.
 * @param input reads files of the local host
 * @param files at least one path
 * @throws errors of `input.readText`; AppError as `parseKubeconfig` for several files
 */
export async function readOperatorKubeconfig(
  input: { readText(path: string): Promise<string> },
  files: readonly [string, ...string[]],
): Promise<OperatorKubeconfig> {
  const texts: KubeconfigText[] = [];
  for (const file of files) texts.push({ file, text: await input.readText(file) });
  const [first, ...more] = texts as [KubeconfigText, ...KubeconfigText[]];
  return more.length === 0 ? new TrustedKubeconfig(first.text, first.file) : new TrustedKubeconfig(mergeKubeconfigs(texts), 'KUBECONFIG');
}

/** A kubeconfig with an address, a CA and a token. `file` names it in messages. */
export function composeTokenKubeconfig(options: Parameters<typeof tokenKubeconfig>[0], file: string): OperatorKubeconfig {
  return new TrustedKubeconfig(tokenKubeconfig(options), file);
}

/** A kubeconfig with an address, a CA, a client certificate and its key. `file` names it in messages. */
export function composeCertificateKubeconfig(options: Parameters<typeof clientCertificateKubeconfig>[0], file: string): OperatorKubeconfig {
  return new TrustedKubeconfig(clientCertificateKubeconfig(options), file);
}
