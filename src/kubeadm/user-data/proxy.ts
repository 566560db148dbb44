import { AppError, usageError } from '../../base/errors.ts';
import { rootFileEntry } from './model.ts';

/** The proxy of a host, as text of the command line; undefined: none. */
export interface ProxyOptions {
  readonly httpProxy?: string | undefined;
  readonly httpsProxy?: string | undefined;
  readonly noProxy?: string | undefined;
}

/** Units that connect to registries or to the API server. A drop-in of a unit that a host does not have has no effect. */
const RUNTIMES = ['containerd.service', 'crio.service'] as const;
const UNITS = [...RUNTIMES, 'kubelet.service'] as const;
const NO_PROXY = /^[\w.:*/[\]-]+(?:,[\w.:*/[\]-]+)*$/;

export type HostProxy = ReturnType<typeof hostProxy>;

/**
 * Drop-ins that give the container runtime and the kubelet a proxy.
 * @returns `environment`: lines of a `[Service]` section; `restart`: units that may run before their drop-ins are written
 * @throws AppError USAGE or USER_DATA_SECRET (exit code 2)
 * @see golang.org/x/net/http/httpproxy for the variables; curl reads the same
 */
export function hostProxy({ httpProxy, httpsProxy, noProxy }: ProxyOptions) {
  const proxies = [...variable('HTTP_PROXY', '--http-proxy', httpProxy), ...variable('HTTPS_PROXY', '--https-proxy', httpsProxy)];
  if (proxies.length === 0) {
    if (noProxy !== undefined) throw usageError('--no-proxy requires a proxy', 'Add --https-proxy or --http-proxy');
    return { environment: [], dropIns: [], restart: [] };
  }
  // Without exceptions, the kubelet would reach the API server and the probes of Pods through the proxy.
  if (noProxy === undefined || !NO_PROXY.test(noProxy))
    throw usageError(
      `--no-proxy ${noProxy === undefined ? 'is required with a proxy' : 'is not a comma-separated list of addresses, subnets and domains'}`,
      'List the API server and the Service, Pod and node subnets: --no-proxy localhost,127.0.0.1,10.0.0.0/8,.cluster.local',
    );
  const environment = [...proxies, `Environment="NO_PROXY=${noProxy}"`];
  const text = ['# Written by kubeletadm config user-data.', '[Service]', ...environment, ''].join('\n');
  return {
    environment,
    dropIns: UNITS.map((unit) => rootFileEntry(`/etc/systemd/system/${unit}.d/http-proxy.conf`, text)),
    restart: RUNTIMES,
  };
}

/** @returns the line of a variable, with specifiers of systemd escaped; none: not given */
function variable(name: string, option: string, text: string | undefined): readonly string[] {
  if (text === undefined) return [];
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || !/^(?:https?|socks5h?):$/.test(url.protocol) || url.hostname === '' || /["\\\s]/.test(text))
    throw usageError(`${option}: not the URL of a proxy`, `For example: ${option} http://proxy.example.com:3128`);
  if (url.username !== '' || url.password !== '')
    throw new AppError(
      {
        code: 'USER_DATA_SECRET',
        message: `${option}: the URL contains credentials, and every process on a host can read the user data of the host`,
        hint: 'Use a proxy that permits hosts by their addresses, without a password',
      },
      { exitCode: 2 },
    );
  return [`Environment="${name}=${text.replaceAll('%', '%%')}"`];
}
