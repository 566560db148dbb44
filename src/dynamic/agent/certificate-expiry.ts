import type { Clock } from '../../base/clock.ts';
import { observe } from '../../host/access/observe.ts';
import { fileFacts } from '../../host/facts/file-facts.ts';
import { kubeletServerOf } from '../../kubelet/effective/configz.ts';
import { observeKubelet } from '../../kubelet/effective/observe-kubelet.ts';
import { readCertificate } from '../../x509/read-certificate.ts';
import type { AgentOptions } from './agent-options.ts';
import { readKubeletCredential } from './configz-source.ts';

/** Expiry of the certificates in the files of a kubelet, in seconds since 1970. Absent: the kubelet has none, or it cannot be read. */
export type CertificateExpiry = Readonly<Partial<Record<'client' | 'serving', number>>>;

/** Kubelets renew certificates weeks before their end; metrics may be requested every few seconds. */
const REFRESH_MS = 60_000;

/**
 * Reads the client certificate of the kubeconfig, and the serving certificate of the configuration that the kubelet runs.
 * @returns reads again after a minute
 */
export function certificateExpiry(options: Pick<AgentOptions, 'host' | 'kubeconfig' | 'catalogue' | 'signal'> & { readonly clock: Clock }) {
  let last: { readonly at: number; readonly value: Promise<CertificateExpiry> } | null = null;
  return (): Promise<CertificateExpiry> => {
    const at = options.clock.now().getTime();
    if (last === null || Math.abs(at - last.at) >= REFRESH_MS) last = { at, value: readExpiry(options) };
    return last.value;
  };
}

async function readExpiry({ host, kubeconfig, catalogue, signal }: Parameters<typeof certificateExpiry>[0]): Promise<CertificateExpiry> {
  const serving = async (): Promise<string> => {
    const { running, flags } = await observeKubelet(host, catalogue, signal);
    const file = kubeletServerOf(running.layered.config, flags.findLast(({ name }) => name === 'cert-dir')?.value)?.certificateFile;
    return file === undefined ? '' : ((await observe(host, fileFacts([file]), signal)).get(file)?.content ?? '');
  };
  const client = async (): Promise<string> => {
    const credential = await readKubeletCredential(host, kubeconfig, signal);
    return credential.kind === 'certificate' ? credential.certificate : '';
  };
  const found = await Promise.all(
    Object.entries({ client, serving }).map(async ([name, read]) => {
      const certificate = readCertificate(await read().catch(() => ''));
      return certificate === null ? [] : [[name, certificate.notAfter.getTime() / 1000] as const];
    }),
  );
  return Object.fromEntries(found.flat());
}
