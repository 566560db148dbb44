import { defineFact } from '../../host/facts/fact.ts';
import { ETCD_DATA_DIR, EXTRA_ARGS_DEB, EXTRA_ARGS_RPM } from '../../kube/well-known.ts';

/** Something that a reset keeps on a host, with a command to remove it. */
export interface Leftover {
  readonly what: string;
  readonly hint: string;
}

const CNI_DIR = '/etc/cni/net.d';
const EXTRA_ARGS_FILES = [EXTRA_ARGS_DEB, EXTRA_ARGS_RPM];
const DROP_IN_DIRS = ['/etc/systemd/system/kubelet.service.d', '/usr/lib/systemd/system/kubelet.service.d'];
const COUNT_RULES = `n=0
for c in iptables ip6tables; do command -v $c-save >/dev/null 2>&1 && n=$((n + $($c-save 2>/dev/null | grep -cE '^:(KUBE|CNI|cali|FLANNEL|CILIUM)'))); done
command -v nft >/dev/null 2>&1 && n=$((n + $(nft list tables 2>/dev/null | grep -cE 'kube-proxy|cilium|calico')))
v=0; command -v ipvsadm >/dev/null 2>&1 && v=$(ipvsadm -Ln 2>/dev/null | grep -cE '^(TCP|UDP|SCTP)')
l=$(ls -d /sys/class/net/cni0 /sys/class/net/flannel.1 /sys/class/net/cilium_* /sys/class/net/vxlan.calico /sys/class/net/kube-ipvs0 2>/dev/null | sed 's|.*/||' | tr '\\n' ' ')
echo "$n $v $l"`;

/**
 * Objects on a host that are not, or not only, from init or join; reset keeps them as kubeadm does. Only
 * existing ones are listed.
 * @param removed paths of files that reset removes and of directories that it empties
 * @see kubeadm 1.36 cmd/reset.go
 */
export function leftoversExcept(removed: readonly string[]) {
  const remaining = (path: string, names: readonly string[] | null): readonly string[] =>
    removed.includes(path) ? [] : (names ?? []).filter((name) => !removed.includes(`${path}/${name}`));
  return defineFact(
    {
      cni: { kind: 'list', path: CNI_DIR },
      cniState: { kind: 'list', path: '/var/lib/cni' },
      etcd: { kind: 'list', path: ETCD_DATA_DIR },
      kubeconfig: { kind: 'file', path: '/root/.kube/config', content: false },
      defaults: { kind: 'file', path: EXTRA_ARGS_FILES[0] as string },
      sysconfig: { kind: 'file', path: EXTRA_ARGS_FILES[1] as string },
      dropIns: { kind: 'list', path: DROP_IN_DIRS[0] as string },
      packaged: { kind: 'list', path: DROP_IN_DIRS[1] as string },
      enabled: { kind: 'command', argv: ['systemctl', 'is-enabled', 'kubelet'] },
      network: { kind: 'command', argv: ['sh', '-c', COUNT_RULES] },
    },
    (found): readonly Leftover[] => {
      const items: Leftover[] = [];
      const add = (exists: boolean, what: string, hint: string): void => void (exists && items.push({ what, hint }));
      const some = (list: readonly string[] | null): boolean => (list ?? []).length > 0;
      add(some(found.cni), `${CNI_DIR} (${(found.cni ?? []).join(', ')})`, `rm -rf ${CNI_DIR}`);
      add(some(found.cniState), '/var/lib/cni', 'rm -rf /var/lib/cni');
      const [rules = 0, services = 0, ...links] = (found.network.exitCode === 0 ? found.network.stdout : '')
        .trim()
        .split(/\s+/)
        .filter(Boolean);
      add(
        Number(rules) > 0,
        `${rules} chains and tables of iptables and nftables`,
        'restart the host, or flush them, e.g. iptables -F -t nat',
      );
      add(Number(services) > 0, `${services} IPVS services`, 'ipvsadm --clear');
      add(links.length > 0, `network interfaces ${links.join(', ')}`, `ip link delete ${links[0]}`);
      add(some(remaining(ETCD_DATA_DIR, found.etcd)), '/var/lib/etcd with data', 'rm -rf /var/lib/etcd, if no etcd member uses it');
      add(found.kubeconfig !== null, '/root/.kube/config', 'rm /root/.kube/config');
      for (const [i, file] of [found.defaults, found.sysconfig].entries())
        add(
          setsExtraArgs(file?.content),
          `${EXTRA_ARGS_FILES[i]} with KUBELET_EXTRA_ARGS`,
          'delete the line KUBELET_EXTRA_ARGS in this file',
        );
      const dropIns = [found.dropIns, found.packaged].map((list, i) => remaining(DROP_IN_DIRS[i] as string, list));
      for (const [i, list] of dropIns.entries())
        add(
          some(list),
          `${DROP_IN_DIRS[i]} (${list.join(', ')})`,
          i === 0 ? `rm -r ${DROP_IN_DIRS[i]}` : 'remove the package that contains these files',
        );
      add(found.enabled.stdout.trim() === 'enabled', 'kubelet.service, enabled', 'systemctl disable kubelet');
      return items;
    },
  );
}

function setsExtraArgs(text: string | undefined): boolean {
  return /^[ \t]*KUBELET_EXTRA_ARGS=[ \t]*["']?[^"'\s]/m.test(text ?? '');
}
