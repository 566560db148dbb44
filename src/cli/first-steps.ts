/**
 * How to use a new cluster, printed at the end of `init` as kubeadm does: the kubeconfig, and the pod network without
 * which no Node is Ready.
 * @param host the address of the control plane; undefined: the local host
 */
export function firstSteps(host: string | undefined): string {
  return `
The control plane is running. To use the cluster as a regular user, run${host === undefined ? '' : ` on ${host}`}:

  mkdir -p $HOME/.kube
  sudo cp -i /etc/kubernetes/admin.conf $HOME/.kube/config
  sudo chown $(id -u):$(id -g) $HOME/.kube/config

or, as root:

  export KUBECONFIG=/etc/kubernetes/admin.conf

Then install a pod network (https://kubernetes.io/docs/concepts/cluster-administration/addons/):

  kubectl apply -f PODNETWORK.yaml
`;
}
