import fc from 'fast-check';
import { duration, maybe, partial, someOf } from './arbitraries.ts';
import { logging } from './kubelet.ts';

const syncPeriods = { syncPeriod: maybe(duration), minSyncPeriod: maybe(duration) };

/** A KubeProxyConfiguration with any of its fields. */
export const kubeProxyConfiguration = someOf(
  {
    mode: fc.constantFrom('ipvs', 'nftables', 'iptables', ''),
    bindAddress: fc.constantFrom('10.0.0.1', '0.0.0.0', '::', ''),
    clusterCIDR: fc.constantFrom('10.99.0.0/16', '10.99.0.0/16,fd00::/48', ''),
    featureGates: fc.constantFrom({ B: true, A: false }, {}),
    clientConnection: partial({
      kubeconfig: maybe(fc.constant('/x')),
      qps: maybe(fc.constantFrom(5, 2.5, 0)),
      burst: maybe(fc.constant(10)),
      contentType: maybe(fc.constant('application/json')),
      acceptContentTypes: maybe(fc.constant('application/json')),
    }),
    conntrack: partial({
      maxPerCore: maybe(fc.constantFrom(0, 32768, null)),
      min: maybe(fc.constantFrom(null, 131072)),
      tcpEstablishedTimeout: maybe(duration),
      tcpCloseWaitTimeout: maybe(duration),
      tcpBeLiberal: maybe(fc.boolean()),
      udpTimeout: maybe(duration),
      udpStreamTimeout: maybe(duration),
    }),
    iptables: partial({
      masqueradeBit: maybe(fc.constantFrom(14, null)),
      masqueradeAll: maybe(fc.boolean()),
      localhostNodePorts: maybe(fc.constantFrom(true, false, null)),
      ...syncPeriods,
    }),
    ipvs: partial({
      excludeCIDRs: maybe(fc.constantFrom([], ['10.0.0.0/8'], null)),
      strictARP: maybe(fc.boolean()),
      scheduler: maybe(fc.constant('rr')),
      tcpTimeout: maybe(duration),
      tcpFinTimeout: maybe(duration),
      udpTimeout: maybe(duration),
      ...syncPeriods,
    }),
    nftables: partial({ masqueradeBit: maybe(fc.constantFrom(14, 0)), masqueradeAll: maybe(fc.boolean()), ...syncPeriods }),
    winkernel: fc.constantFrom({ networkName: 'n', enableDSR: true, forwardHealthCheckVip: true }, {}),
    detectLocalMode: fc.constantFrom('NodeCIDR', 'BridgeInterface', ''),
    detectLocal: fc.constantFrom({ bridgeInterface: 'cni0' }, { interfaceNamePrefix: 'veth' }, {}),
    logging,
    nodePortAddresses: fc.constantFrom([], ['10.0.0.0/8'], ['primary'], null),
    oomScoreAdj: fc.constantFrom(-999, 0, null),
    windowsRunAsService: fc.boolean(),
    metricsBindAddress: fc.constantFrom('0.0.0.0:10249', 'a: b', ''),
    healthzBindAddress: fc.constantFrom('0.0.0.0:10256', '[::]:10256'),
    hostnameOverride: fc.constantFrom('cp-1', ''),
    bindAddressHardFail: fc.boolean(),
    enableProfiling: fc.boolean(),
    showHiddenMetricsForVersion: fc.constantFrom('1.35', ''),
    configSyncPeriod: duration,
    portRange: fc.constantFrom('1000-2000', ''),
  },
  6,
);
